/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path: the one parser of workspace-relative names.
 * Owns: nothing.
 * Threads: any; pure.
 * May include: base.
 */
#include "lib/work/path.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"

static const char box_prefix[] = "/workspace";

static int refuse(struct err *err, const char *why)
{
    (void)err_set(err, ERR_BAD_PATH, 0, "%s", why);
    return err_remedy(err, "give a path relative to the workspace, such as data/out.csv");
}

/* Drops "/workspace" or "/workspace/" from the front; another absolute path is refused. */
static int strip_prefix(const char **text, size_t *size, struct err *err)
{
    const size_t prefix = sizeof(box_prefix) - 1;

    if (*size == 0 || (*text)[0] != '/') {
        return 0;
    }
    if (*size < prefix || memcmp(*text, box_prefix, prefix) != 0 ||
        (*size > prefix && (*text)[prefix] != '/')) {
        return refuse(err, "the path is absolute and not below /workspace");
    }
    *text += prefix;
    *size -= prefix;
    return 0;
}

/* Copies the components that mean something to out, with single slashes. */
static int copy_components(const char *text, size_t size, char *out, struct err *err)
{
    size_t used = 0;

    for (size_t at = 0; at < size;) {
        const char *slash = memchr(text + at, '/', size - at);
        size_t length = slash != NULL ? (size_t)(slash - text) - at : size - at;
        const char *component = text + at;

        at += length + 1;
        if (length == 0 || (length == 1 && component[0] == '.')) {
            continue;
        }
        if (length == 2 && component[0] == '.' && component[1] == '.') {
            return refuse(err, "the path has a '..' component");
        }
        if (length > PATH_COMPONENT_MAX) {
            return refuse(err, "a component of the path is longer than 255 bytes");
        }
        if (used > 0) {
            out[used++] = '/';
        }
        memcpy(out + used, component, length);
        used += length;
    }
    out[used] = '\0';
    return 0;
}

static int parse(const char *text, size_t size, char **ret_path, struct err *err)
{
    char *out;

    if (size > 0 && memchr(text, '\0', size) != NULL) {
        return refuse(err, "the path has a NUL byte");
    }
    if (strip_prefix(&text, &size, err) < 0) {
        return -1;
    }
    if (size > PATH_BYTES_MAX) {
        return refuse(err, "the path is longer than 4095 bytes");
    }
    out = alloc_zero(size + 1, 1);
    if (copy_components(text, size, out, err) < 0) {
        free(out);
        return -1;
    }
    *ret_path = out;
    return 0;
}

int path_parse(const char *text, size_t size, char **ret_path, struct err *err)
{
    char *path = NULL;

    if (parse(text, size, &path, err) < 0) {
        return -1;
    }
    if (path[0] == '\0') {
        free(path);
        return refuse(err, size == 0 ? "the path is empty" : "the path names the workspace itself");
    }
    *ret_path = path;
    return 0;
}

int path_parse_directory(const char *text, size_t size, char **ret_path, struct err *err)
{
    char *path = NULL;

    if (parse(text, size, &path, err) < 0) {
        return -1;
    }
    if (path[0] == '\0') {
        free(path);
        path = alloc_text(PATH_ROOT);
    }
    *ret_path = path;
    return 0;
}

bool path_is_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= PATH_COMPONENT_MAX && strchr(name, '/') == NULL &&
           !text_equal(name, ".") && !text_equal(name, "..");
}

int path_compare(const char *a, const char *b)
{
    size_t i = 0;
    int x;
    int y;

    while (a[i] != '\0' && a[i] == b[i]) {
        i++;
    }
    /* A slash ends a component, so it sorts below every byte a name can hold, but above the end. */
    x = a[i] == '\0' ? -1 : a[i] == '/' ? 0 : (unsigned char)a[i];
    y = b[i] == '\0' ? -1 : b[i] == '/' ? 0 : (unsigned char)b[i];
    return x - y;
}

bool path_is_beneath(const char *path, const char *ancestor)
{
    size_t length = strlen(ancestor);

    if (text_equal(ancestor, PATH_ROOT) || text_equal(ancestor, "/")) {
        return true;
    }
    return strncmp(path, ancestor, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

unsigned path_depth(const char *path)
{
    unsigned depth = 1;

    for (; *path != '\0'; path++) {
        depth += *path == '/' ? 1 : 0;
    }
    return depth;
}

char *path_parent(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? alloc_copy(path, (size_t)(slash - path)) : alloc_text(PATH_ROOT);
}

char *path_join(const char *directory, const char *name)
{
    if (text_equal(directory, PATH_ROOT)) {
        return alloc_text(name);
    }
    return alloc_printf("%s/%s", directory, name);
}
