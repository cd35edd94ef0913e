/* The executors, inline and with threads: each task runs once, in its lane's order, one a lane at a
 * time, and is completed on the loop; a task may be submitted again from its own complete. */
#include "base/exec.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdalign.h>
#include <time.h>

#include "check.h"
#include "random.h"

enum { TASKS = 200, AGAIN = 3 };

/* A lane's context: only ever one task's. */
struct context {
    int busy;    /* 1 from execute until complete has returned */
    int started; /* tasks */
    int number_of[TN_LANE_COUNT * TASKS * (AGAIN + 1)];
};

struct job {
    struct tn_task task; /* first */
    struct bed *bed;
    int number; /* in its lane */
    int again;  /* how often it is to be submitted once more */
    int executed;
    int completed;
    tn_rc wanted;
};

struct bed {
    struct tn_exec *exec;
    struct context contexts[TN_LANE_COUNT];
    struct job jobs[TN_LANE_COUNT * TASKS];
    int completed[TN_LANE_COUNT];
    int order[TN_LANE_COUNT][TASKS * (AGAIN + 1)];
};

static struct bed bed;

static tn_rc execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct job *job = (struct job *)task;
    struct context *own = context;
    CHECK(own == &job->bed->contexts[task->lane]);
    CHECK(own->busy == 0); /* a race here is what the thread sanitizer looks for */
    own->busy = 1;
    own->number_of[own->started++] = job->number;
    job->executed++;
    return job->wanted == TN_OK ? TN_OK : tn_err_set(err, job->wanted, 0, "task %d", job->number);
}

static void complete(struct tn_task *task, tn_rc rc)
{
    struct job *job = (struct job *)task;
    struct context *own = &job->bed->contexts[task->lane];
    CHECK(rc == job->wanted && task->rc == rc);
    if (rc != TN_OK) {
        char text[32];
        (void)snprintf(text, sizeof text, "task %d", job->number);
        CHECK(strcmp(task->err.text, text) == 0);
    }
    CHECK(own->busy == 1); /* what execute left in the context is still there */
    own->busy = 0;
    job->completed++;
    CHECK(job->executed == job->completed);
    bed.order[task->lane][bed.completed[task->lane]++] = job->number;
    if (job->again > 0) {
        job->again--;
        tn_exec_submit(job->bed->exec, task);
    }
}

static void submit_all(uint64_t *seed, int *wanted)
{
    int numbers[TN_LANE_COUNT] = {0};
    for (int i = 0; i < TASKS; i++) {
        struct job *job = &bed.jobs[i];
        enum tn_lane lane = (enum tn_lane)random_below(seed, TN_LANE_COUNT);
        *job = (struct job){.task = {.execute = execute, .complete = complete, .lane = lane},
                            .bed = &bed,
                            .number = numbers[lane]++,
                            .again = (int)random_below(seed, AGAIN),
                            .wanted = random_below(seed, 4) == 0 ? TN_IO : TN_OK};
        *wanted += 1 + job->again;
        tn_exec_submit(bed.exec, &job->task);
        if (random_below(seed, 3) == 0) { /* some are completed while others are submitted */
            *wanted -= tn_exec_turn(bed.exec, random_below(seed, 2) == 1);
        }
    }
}

static void run(uint64_t seed)
{
    int wanted = 0;
    submit_all(&seed, &wanted);
    while (wanted > 0) {
        int count = tn_exec_turn(bed.exec, true);
        CHECK(count > 0);
        wanted -= count;
    }
    CHECK(wanted == 0);
    CHECK(bed.exec->under_way == 0);
    CHECK(tn_exec_turn(bed.exec, true) == 0); /* with nothing under way it doesn't wait */
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        int next = 0; /* first submissions run in their order */
        for (int i = 0; i < bed.completed[lane]; i++) {
            CHECK(bed.contexts[lane].number_of[i] == bed.order[lane][i]);
            CHECK(bed.order[lane][i] <= next);
            next += bed.order[lane][i] == next;
        }
    }
    bed.exec->vtable->close(bed.exec);
}

static void bed_contexts(void *contexts[TN_LANE_COUNT])
{
    memset(&bed, 0, sizeof bed);
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        contexts[lane] = &bed.contexts[lane];
    }
}

static void tasks_run_inline_in_order(void)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        static struct tn_exec_inline exec;
        void *contexts[TN_LANE_COUNT];
        bed_contexts(contexts);
        tn_exec_inline_open(&exec, contexts);
        bed.exec = &exec.exec;
        run(seed);
    }
}

static void tasks_run_on_threads_in_order(void)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        static alignas(max_align_t) unsigned char memory[TN_EXEC_THREADS_SIZE];
        void *contexts[TN_LANE_COUNT];
        struct tn_err err;
        bed_contexts(contexts);
        tn_rc rc = tn_exec_threads_open(memory, contexts, &bed.exec, &err);
        CHECK_OK(rc, err);
        run(seed);
    }
}

/* Inline, a short task goes before a long one that was there first. */
static void short_tasks_do_not_wait_for_long_ones(void)
{
    static struct tn_exec_inline exec;
    void *contexts[TN_LANE_COUNT];
    bed_contexts(contexts);
    tn_exec_inline_open(&exec, contexts);
    bed.exec = &exec.exec;
    for (int i = 0; i < 4; i++) {
        enum tn_lane lane = i < 2 ? TN_LANE_LONG : TN_LANE_SHORT;
        bed.jobs[i] = (struct job){.task = {.execute = execute, .complete = complete, .lane = lane},
                                   .bed = &bed,
                                   .number = i % 2};
        tn_exec_submit(bed.exec, &bed.jobs[i].task);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(tn_exec_turn(bed.exec, false) == 1);
        CHECK(bed.completed[TN_LANE_SHORT] == (i < 2 ? i + 1 : 2));
    }
    CHECK(tn_exec_turn(bed.exec, false) == 0);
    bed.exec->vtable->close(bed.exec);
}

/* What is to be on disk soon waits for none of them: here they end only when it has run. */
struct gate {
    struct tn_task task; /* first */
    sem_t *sync_ran;
    bool completed;
};

static tn_rc wait_for_sync(struct tn_task *task, void *context, struct tn_err *err)
{
    struct gate *gate = (struct gate *)(void *)task;
    CHECK((context != NULL) == (task->lane < TN_LANE_COUNT));
    struct timespec end;
    (void)err;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    CHECK(sem_timedwait(gate->sync_ran, &end) == 0);
    return TN_OK;
}

static tn_rc let_others_go(struct tn_task *task, void *context, struct tn_err *err)
{
    struct gate *gate = (struct gate *)(void *)task;
    (void)err;
    CHECK(context == NULL);
    for (int others = TN_LANES - 1; others > 0; others--) {
        (void)sem_post(gate->sync_ran);
    }
    return TN_OK;
}

static void gate_complete(struct tn_task *task, tn_rc rc)
{
    CHECK(rc == TN_OK);
    ((struct gate *)(void *)task)->completed = true;
}

static void syncs_wait_for_nobody(void)
{
    static alignas(max_align_t) unsigned char memory[TN_EXEC_THREADS_SIZE];
    void *contexts[TN_LANE_COUNT];
    struct tn_err err;
    sem_t sync_ran;
    static struct gate gates[TN_LANES];
    bed_contexts(contexts);
    CHECK(sem_init(&sync_ran, 0, 0) == 0);
    CHECK_OK(tn_exec_threads_open(memory, contexts, &bed.exec, &err), err);
    for (int lane = 0; lane < TN_LANES; lane++) {
        bool sync = lane == TN_LANE_SYNC;
        gates[lane] = (struct gate){.task = {.execute = sync ? let_others_go : wait_for_sync,
                                             .complete = gate_complete,
                                             .lane = (enum tn_lane)lane},
                                    .sync_ran = &sync_ran};
        tn_exec_submit(bed.exec, &gates[lane].task);
    }
    while (bed.exec->under_way > 0 || bed.exec->uploads > 0) {
        CHECK(tn_exec_turn(bed.exec, true) > 0);
    }
    for (int lane = 0; lane < TN_LANES; lane++) {
        CHECK(gates[lane].completed);
    }
    bed.exec->vtable->close(bed.exec);
    (void)sem_destroy(&sync_ran);
}

static tn_rc look_at_mask(struct tn_task *task, void *context, struct tn_err *err)
{
    sigset_t held;
    (void)task;
    (void)context;
    (void)err;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &held) == 0);
    CHECK(sigismember(&held, SIGTERM) == 1 && sigismember(&held, SIGHUP) == 1);
    CHECK(sigismember(&held, SIGSEGV) == 0);
    return TN_OK;
}

/* Else one that the first thread holds would be a worker's, and lost with it. */
static void workers_take_no_signals(void)
{
    static alignas(max_align_t) unsigned char memory[TN_EXEC_THREADS_SIZE];
    void *contexts[TN_LANE_COUNT];
    struct tn_err err;
    static struct gate gates[TN_LANES];
    sigset_t held;
    bed_contexts(contexts);
    CHECK_OK(tn_exec_threads_open(memory, contexts, &bed.exec, &err), err);
    for (int lane = 0; lane < TN_LANES; lane++) {
        gates[lane] = (struct gate){.task = {.execute = look_at_mask,
                                             .complete = gate_complete,
                                             .lane = (enum tn_lane)lane}};
        tn_exec_submit(bed.exec, &gates[lane].task);
    }
    while (bed.exec->under_way > 0 || bed.exec->uploads > 0) {
        CHECK(tn_exec_turn(bed.exec, true) > 0);
    }
    bed.exec->vtable->close(bed.exec);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &held) == 0);
    CHECK(sigismember(&held, SIGTERM) == 0); /* who made them has its own again */
}

static const struct test tests[] = {
    TEST(syncs_wait_for_nobody),
    TEST(workers_take_no_signals),
    TEST(tasks_run_inline_in_order),
    TEST(tasks_run_on_threads_in_order),
    TEST(short_tasks_do_not_wait_for_long_ones),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
