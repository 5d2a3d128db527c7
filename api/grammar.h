/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grammar: the form of the words that options are made of. Pure; any thread.
 *
 * The whole text must fit: no blank, line end or other byte before or behind.
 */
#ifndef KERND_API_GRAMMAR_H
#define KERND_API_GRAMMAR_H

#include <stdbool.h>

struct grammar_rule {
    bool (*fits)(const char *text);
    const char *words; /* "... must be <words>" */
};

/* "vcpu:", "vgpio:" or "vdisk:" and a name of letters, digits, '.', '_', '-'. */
extern const struct grammar_rule grammar_profile;

/* Labels of letters, digits and inner hyphens (RFC 1123), the last one of letters alone. */
extern const struct grammar_rule grammar_domain;

/* "ALL", "CAP_NET_RAW", "SYS_ADMIN": the form only, not whether there is such a capability. */
extern const struct grammar_rule grammar_capability;

extern const struct grammar_rule grammar_apparmor;

/* The reference of an image: no blanks and control characters, not like an option. */
extern const struct grammar_rule grammar_image;

/* Dotted name of a python module: letters of ASCII, digits and underscores. */
extern const struct grammar_rule grammar_module;

/* Key of a label: letters, digits, '.', '_', '-', '/'; first and last a letter or digit. */
extern const struct grammar_rule grammar_label_key;

#endif
