/* Over what the internet is reached, by tables as Linux shows them. */
#include "app/link.h"

#include "check.h"

static const char head[] =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

static void the_default_route_decides(void)
{
    static const struct {
        const char *routes;
        const char *routes_6;
        const char *name;
        bool up;
        bool metered;
    } cases[] = {
        {"eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n", NULL, "eth0", true,
         false},
        {"eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n", NULL, "", false, false},
        {"wwan0\t00000000\t00000000\t0001\t0\t0\t700\t00000000\t0\t0\t0\n"
         "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n",
         NULL, "eth0", true, false},
        {"wwan0\t00000000\t00000000\t0001\t0\t0\t700\t00000000\t0\t0\t0\n"
         "eth0\t00000000\t0101A8C0\t0002\t0\t0\t100\t00000000\t0\t0\t0\n",
         NULL, "wwan0", true, true}, /* the other one isn't up */
        {"ppp1\t00000000\t00000000\t0001\t0\t0\t0\t00000000", NULL, "ppp1", true, true},
        {"",
         "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
         "fe800000000000000000000000000001 00000400 00000001 00000000 00000003 usb0\n"
         "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
         "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n",
         "usb0", true, true},
        {"x\n\n \t\n0\t0\t0\n", "\n1 2 3\n", "", false, false},
    };
    struct tn_text_list_item metered[] = {
        {"wwan0", &metered[1]}, {"ppp*", &metered[2]}, {"usb0", NULL}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[1024];
        struct tn_link link;
        (void)snprintf(text, sizeof text, "%s%s", head, cases[i].routes);
        tn_link_judge(text, cases[i].routes_6, metered, &link);
        CHECK(strcmp(link.name, cases[i].name) == 0);
        CHECK(link.up == cases[i].up && link.metered == cases[i].metered);
    }
}

/* Where nobody says what there is, nothing waits for it. */
static void a_link_that_is_not_known_is_there(void)
{
    struct tn_link link;
    tn_link_judge(NULL, NULL, NULL, &link);
    CHECK(link.up && !link.metered && !link.name[0]);
    tn_link_look(NULL, &link); /* whatever this machine has */
    CHECK(!link.metered && (link.up || !link.name[0]));
}

static const struct test tests[] = {
    TEST(the_default_route_decides),
    TEST(a_link_that_is_not_known_is_there),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
