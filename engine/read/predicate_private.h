/* The tree of a predicate, as predicate_parse.c makes it and predicate.c walks it.
 *
 * Nodes stand in postfix order, so a tree is a span of the array that ends with its root: `size`
 * says how long it is, the right child is the node before, and the left one stands before the right
 * one's span.
 *
 *     not (a > 1) or b is null         [a > 1] [not] [b is null] [or]
 *                                       1       2     1           4
 */
#pragma once

#include "read/predicate.h"

enum tn_node_kind {
    TN_NODE_COMPARE,
    TN_NODE_IN,
    TN_NODE_IS_NULL,
    TN_NODE_NOT,
    TN_NODE_AND,
    TN_NODE_OR
};

/* As bits, so that an operator is the set of outcomes for which it is true. */
enum tn_order { TN_ORDER_BELOW = 1, TN_ORDER_SAME = 2, TN_ORDER_ABOVE = 4 };

/* Where a literal lies among the values of its column's type: 1.5 is none of an INT, but has a
 * place. */
enum tn_place {
    TN_PLACE_AT,    /* it is `value` */
    TN_PLACE_AFTER, /* above `value`, below all that are above it */
    TN_PLACE_FIRST, /* below all values */
    TN_PLACE_LAST,  /* above all */
};

struct tn_literal {
    struct tn_value value;
    enum tn_place place;
};

struct tn_node {
    enum tn_node_kind kind;
    uint32_t size;    /* nodes of its tree, itself included */
    uint32_t field;   /* leaves */
    unsigned order;   /* COMPARE: a set of enum tn_order */
    uint32_t literal; /* the first of them */
    uint32_t literal_count;
};

/* Operands that wait at once: one for each `and` and `or` that is open, at most two a level. */
enum { TN_PREDICATE_STACK_MAX = 3 * TN_PREDICATE_DEPTH_MAX };

struct tn_predicate {
    const struct tn_schema *schema;
    struct tn_node *nodes;
    uint32_t node_count;
    struct tn_literal *literals;
    uint32_t literal_count;
};

static inline bool tn_node_is_leaf(const struct tn_node *node)
{
    return node->kind <= TN_NODE_IS_NULL;
}

/* Reads a literal's text (no quotes) as a place among the column's values. INVALID. */
TN_MUST_USE tn_rc tn_literal_read(const struct tn_type *type, struct tn_bytes text, bool number,
                                  struct tn_arena *arena, struct tn_literal *literal,
                                  struct tn_err *err);

/* Where a value that is not NULL lies, seen from a literal. */
enum tn_order tn_literal_order(const struct tn_type *type, const struct tn_value *value,
                               const struct tn_literal *literal);
