/* version: tarn's, and those of the libraries that it runs with, by their own word. */
#pragma once

#include <stdio.h>

#define TN_VERSION "0.1.0"

void tn_say_version(FILE *to);
