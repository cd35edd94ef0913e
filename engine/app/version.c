#include "app/version.h"

#include <bzlib.h>
#include <cjson/cJSON.h>
#include <expat.h>
#include <jansson.h>
#include <lua5.4/lua.h>
#include <zlib.h>
#include <zstd.h>

/* avro-c has no such function. */
void tn_say_version(FILE *to)
{
    XML_Expat_Version expat = XML_ExpatVersionInfo();
    (void)fprintf(to, "tarn %s\n", TN_VERSION);
    (void)fprintf(to, "lua %s\n", LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE);
    (void)fprintf(to, "zstd %s\n", ZSTD_versionString());
    (void)fprintf(to, "zlib %s\n", zlibVersion());
    (void)fprintf(to, "bzip2 %s\n", BZ2_bzlibVersion());
    (void)fprintf(to, "jansson %s\n", jansson_version_str());
    (void)fprintf(to, "cJSON %s\n", cJSON_Version());
    (void)fprintf(to, "expat %d.%d.%d\n", expat.major, expat.minor, expat.micro);
}
