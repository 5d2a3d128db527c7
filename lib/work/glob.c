/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob: shell patterns without recursion and without exponential backtracking.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/work/glob.h"

#include <stddef.h>
#include <string.h>

#include "lib/work/path.h"

/* Where the set that starts at pattern ("[...") ends: at its ']', or NULL when it has none. */
static const char *set_end(const char *pattern, const char *end)
{
    const char *at = pattern + 1;

    if (at < end && (*at == '!' || *at == '^')) {
        at++;
    }
    if (at < end && *at == ']') { /* a ']' right at the start is a member */
        at++;
    }
    return at < end ? memchr(at, ']', (size_t)(end - at)) : NULL;
}

static bool set_has(const char *pattern, const char *close, unsigned char byte)
{
    const char *at = pattern + 1;
    bool negated = *at == '!' || *at == '^';
    bool found = false;

    at += negated ? 1 : 0;
    while (at < close) {
        unsigned char low = (unsigned char)*at;
        unsigned char high = low;

        if (at + 2 < close && at[1] == '-') {
            high = (unsigned char)at[2];
            at += 2;
        }
        at++;
        found = found || (low <= byte && byte <= high);
    }
    return found != negated;
}

/*
 * Does the pattern element at `pattern` (not a '*') take this byte? The number of pattern bytes it
 * uses is told in *ret_used.
 */
static bool takes(const char *pattern, const char *end, unsigned char byte, size_t *ret_used)
{
    const char *close;

    *ret_used = 1;
    switch (*pattern) {
    case '?':
        return true;
    case '\\':
        if (pattern + 1 < end) {
            *ret_used = 2;
            return (unsigned char)pattern[1] == byte;
        }
        return byte == '\\';
    case '[':
        close = set_end(pattern, end);
        if (close != NULL) {
            *ret_used = (size_t)(close - pattern) + 1;
            return set_has(pattern, close, byte);
        }
        return byte == '[';
    default:
        return (unsigned char)*pattern == byte;
    }
}

/* One component. Only the last '*' can be worth going back to, so there is one place to remember.
 */
static bool match_component(const char *pattern, size_t pattern_size, const char *name,
                            size_t name_size)
{
    const char *end = pattern + pattern_size;
    const char *name_end = name + name_size;
    const char *star = NULL;
    const char *star_name = NULL;
    size_t used;

    while (name < name_end) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            star_name = name;
        } else if (pattern < end && takes(pattern, end, (unsigned char)*name, &used)) {
            pattern += used;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++star_name;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*') {
        pattern++;
    }
    return pattern == end;
}

static size_t component_size(const char *path)
{
    return (size_t)(strchrnul(path, '/') - path);
}

static const char *next_component(const char *path)
{
    path += component_size(path);
    return *path == '/' ? path + 1 : path;
}

static bool is_any_depth(const char *pattern)
{
    return pattern[0] == '*' && pattern[1] == '*' && (pattern[2] == '/' || pattern[2] == '\0');
}

/* The same method one level up: components are the letters, "**" is the star. */
static bool match_path(const char *pattern, const char *path)
{
    const char *star = NULL;
    const char *star_path = NULL;

    while (*path != '\0') {
        if (is_any_depth(pattern)) {
            pattern = next_component(pattern);
            star = pattern;
            star_path = path;
        } else if (*pattern != '\0' &&
                   match_component(pattern, component_size(pattern), path, component_size(path))) {
            pattern = next_component(pattern);
            path = next_component(path);
        } else if (star != NULL) {
            pattern = star;
            star_path = next_component(star_path);
            path = star_path;
        } else {
            return false;
        }
    }
    while (is_any_depth(pattern)) {
        pattern = next_component(pattern);
    }
    return *pattern == '\0';
}

bool glob_match(const char *pattern, const char *path)
{
    const char *name;

    if (strchr(pattern, '/') != NULL || is_any_depth(pattern)) {
        return match_path(pattern, path);
    }
    name = path_base(path);
    return match_component(pattern, strlen(pattern), name, strlen(name));
}
