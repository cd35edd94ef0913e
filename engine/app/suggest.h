/* suggest: what was meant by the name of a table that isn't there. */
#pragma once

#include "app/boot.h"

/* After an ABSENT for `table` ("D.T"): sets the text to "D.T: there is no such table; did you mean
 * 'D.U'?" and returns ABSENT; the nearest of at most 128 tables of D, or else of the databases.
 * Uses app->input for the moment. */
tn_rc tn_suggest_table(struct tn_app *app, const char *table, struct tn_err *err);

/* The same for a database's name alone. */
tn_rc tn_suggest_database(struct tn_app *app, const char *database, struct tn_err *err);
