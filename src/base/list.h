/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive doubly linked lists. A head and its members are all struct
 * pdxi_list; an empty head, and a member that is in no list, point to
 * themselves.
 */
#ifndef PDXI_BASE_LIST_H
#define PDXI_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct pdxi_list {
    struct pdxi_list *next;
    struct pdxi_list *prev;
};

#define pdxi_container_of(ptr, type, member) \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define pdxi_list_for_each(pos, head) for (pos = (head)->next; pos != (head); pos = pos->next)

/* `tmp` holds the next member, so that `pos` may leave the list in the body. */
#define pdxi_list_for_each_safe(pos, tmp, head) \
    for (pos = (head)->next, tmp = pos->next; pos != (head); pos = tmp, tmp = pos->next)

static inline void pdxi_list_init(struct pdxi_list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool pdxi_list_empty(const struct pdxi_list *head)
{
    return head->next == head;
}

static inline void pdxi_list_add_tail(struct pdxi_list *head, struct pdxi_list *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

/* Also when `l` is in no list. Afterwards it is in none. */
static inline void pdxi_list_remove(struct pdxi_list *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    pdxi_list_init(l);
}

/* The first member, or NULL. */
static inline struct pdxi_list *pdxi_list_first(const struct pdxi_list *head)
{
    return head->next == head ? NULL : head->next;
}

/* Moves all members of `from` to the end of `to`. */
static inline void pdxi_list_splice_tail(struct pdxi_list *to, struct pdxi_list *from)
{
    if (pdxi_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    pdxi_list_init(from);
}

#endif
