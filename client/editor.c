/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: read lines from a terminal.
 * Owns: libedit; the locale's character type; SIGINT while it reads.
 * Threads: main.
 * May include: client, lib/base, histedit.h.
 */
#include "client/editor.h"

#include <dlfcn.h>
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define LIBRARY "libedit.so.2" /* the name that Debian's libedit2 has had since 2012 */
#define HISTORY_LINES 1000
#define LISTED_MAX 60
#define END_OF_TRANSMISSION 4 /* Ctrl-D */

/* The functions of libedit that are used, with its own types (editline(3)). */
struct library {
    void *handle;
    __typeof__(el_init) *el_init;
    __typeof__(el_end) *el_end;
    __typeof__(el_set) *el_set;
    __typeof__(el_gets) *el_gets;
    __typeof__(el_line) *el_line;
    __typeof__(el_insertstr) *el_insertstr;
    __typeof__(el_resize) *el_resize;
    __typeof__(history_init) *history_init;
    __typeof__(history_end) *history_end;
    __typeof__(history) *history;
};

struct editor {
    struct library library; /* handle NULL: plain lines */
    bool terminal;
    EditLine *line;
    History *history;
    HistEvent event;
    char *history_path;
    const char *prompt;
    sigset_t outside; /* the mask of signals but for an edited line */
    bool first;       /* nothing of this line was waited for yet */
    editor_complete *complete;
    void *context;
};

/* libedit's callbacks and the signal handler have no other way to them. */
static struct editor *current;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- libedit ---- */

static bool load(struct library *library)
{
    const struct {
        const char *name;
        void *place;
    } wanted[] = {
        { "el_init", &library->el_init },         { "el_end", &library->el_end },
        { "el_set", &library->el_set },           { "el_gets", &library->el_gets },
        { "el_line", &library->el_line },         { "el_insertstr", &library->el_insertstr },
        { "el_resize", &library->el_resize },     { "history_init", &library->history_init },
        { "history_end", &library->history_end }, { "history", &library->history }
    };

    library->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library->handle != NULL && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *found = dlsym(library->handle, wanted[i].name);

        if (found == NULL) {
            (void)dlclose(library->handle);
            library->handle = NULL;
        }
        memcpy(wanted[i].place, &found, sizeof(found));
    }
    return library->handle != NULL;
}

static char *give_prompt(EditLine *line)
{
    static char prompt[64];

    (void)line;
    (void)snprintf(prompt, sizeof(prompt), "%s", current->prompt);
    return prompt;
}

/* An interrupt comes only while this waits: one a moment before the wait would be slept over. */
static bool wait_for_byte(void)
{
    struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };

    while (interrupted == 0) {
        if (ppoll(&terminal, 1, NULL, &current->outside) >= 0 || errno != EINTR) {
            return true;
        }
    }
    return false;
}

/* Is something there that was typed before this line could be edited? */
static bool was_typed_ahead(void)
{
    struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };
    const bool first = current->first;

    current->first = false;
    return first && poll(&terminal, 1, 0) > 0;
}

/* A character of the terminal, decoded by the C library; an interrupt ends the line. */
static int give_character(EditLine *line, wchar_t *ret_character)
{
    const bool ahead = was_typed_ahead();
    mbstate_t state = { 0 };
    char byte;

    (void)line;
    while (wait_for_byte()) {
        const ssize_t got = read(STDIN_FILENO, &byte, 1);
        size_t length;

        if (got <= 0) {
            return (int)got;
        }
        /* The key that ends the input waits as a mark, which an editor reads as NUL (n_tty.c). */
        if (ahead && byte == '\0') {
            *ret_character = END_OF_TRANSMISSION;
            return 1;
        }
        length = mbrtowc(ret_character, &byte, 1, &state);
        if (length == 0 || length == 1) {
            return 1;
        }
        if (length == (size_t)-1) {
            state = (mbstate_t){ 0 };
        }
    }
    return -1;
}

/* How many bytes all of them begin with. */
static size_t common_start(const struct strv *found)
{
    size_t length = strlen(found->items[0]);

    for (size_t i = 1; i < found->count; i++) {
        size_t same = 0;

        while (same < length && found->items[i][same] == found->items[0][same]) {
            same++;
        }
        length = same;
    }
    return length;
}

static void list(const struct strv *found)
{
    (void)putchar('\n');
    for (size_t i = 0; i < found->count && i < LISTED_MAX; i++) {
        (void)printf("%s  ", found->items[i]);
    }
    (void)printf("%s\n", found->count > LISTED_MAX ? "..." : "");
    (void)fflush(stdout);
}

/* The key Tab. */
static unsigned char complete_word(EditLine *line, int key)
{
    const struct library *library = &current->library;
    const LineInfo *info = library->el_line(line);
    CLEANUP_FREE char *before = alloc_copy(info->buffer, (size_t)(info->cursor - info->buffer));
    CLEANUP_STRV struct strv found = { .count = 0 };
    const char *word = before;
    size_t start;

    (void)key;
    current->complete(current->context, before, &found);
    if (found.count == 0) {
        return before[strspn(before, " \t")] == '\0' && library->el_insertstr(line, "    ") == 0
                   ? CC_REFRESH
                   : CC_REFRESH_BEEP;
    }
    /* The word is what the line ends with and all of them begin with. */
    start = common_start(&found);
    while (*word != '\0' && strncmp(word, found.items[0], strlen(word)) != 0) {
        word++;
    }
    if (start > strlen(word)) {
        CLEANUP_FREE char *more = alloc_copy(found.items[0] + strlen(word), start - strlen(word));

        return library->el_insertstr(line, more) == 0 ? CC_REFRESH : CC_ERROR;
    }
    if (found.count > 1) {
        list(&found);
        return CC_REDISPLAY;
    }
    return CC_REFRESH;
}

static void open_history(struct editor *editor)
{
    const struct library *library = &editor->library;

    editor->history = library->history_init();
    (void)library->history(editor->history, &editor->event, H_SETSIZE, HISTORY_LINES);
    (void)library->history(editor->history, &editor->event, H_SETUNIQUE, 1);
    if (editor->history_path != NULL) {
        (void)library->history(editor->history, &editor->event, H_LOAD, editor->history_path);
    }
    (void)library->el_set(editor->line, EL_HIST, library->history, editor->history);
}

static void open_library(struct editor *editor)
{
    const struct library *library = &editor->library;

    (void)setlocale(LC_CTYPE, "");
    editor->line = library->el_init("kernd", stdin, stdout, stderr);
    (void)library->el_set(editor->line, EL_PROMPT, give_prompt);
    (void)library->el_set(editor->line, EL_EDITOR, "emacs");
    (void)library->el_set(editor->line, EL_GETCFN, give_character);
    open_history(editor);
    if (editor->complete != NULL) {
        (void)library->el_set(editor->line, EL_ADDFN, "complete", "Complete the word",
                              complete_word);
        (void)library->el_set(editor->line, EL_BIND, "^I", "complete", NULL);
    }
}

struct editor *editor_new(const char *history, editor_complete *complete, void *context)
{
    struct editor *editor = alloc_zero(1, sizeof(*editor));

    editor->terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    editor->history_path = alloc_text(history);
    editor->complete = complete;
    editor->context = context;
    current = editor;
    if (editor->terminal && load(&editor->library)) {
        open_library(editor);
    }
    return editor;
}

void editor_free(struct editor *editor)
{
    if (editor == NULL) {
        return;
    }
    if (editor->line != NULL) {
        const mode_t mask = umask(077);

        if (editor->history_path != NULL) {
            (void)editor->library.history(editor->history, &editor->event, H_SAVE,
                                          editor->history_path);
        }
        (void)umask(mask);
        editor->library.history_end(editor->history);
        editor->library.el_end(editor->line);
    }
    /* The library stays: what it and its libraries keep for good would be lost track of. */
    free(editor->history_path);
    free(editor);
    current = NULL;
}

void editor_remember(struct editor *editor, const char *text)
{
    if (editor->line != NULL && text[strspn(text, " \t\n")] != '\0') {
        (void)editor->library.history(editor->history, &editor->event, H_ENTER, text);
    }
}

/* ---- lines ---- */

static enum editor_end read_edited(struct editor *editor, char **ret_line)
{
    int count = 0;
    const char *line;
    sigset_t interrupts;

    (void)sigemptyset(&interrupts);
    (void)sigaddset(&interrupts, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &interrupts, &editor->outside);
    editor->library.el_resize(editor->line);
    editor->first = true;
    line = editor->library.el_gets(editor->line, &count);
    (void)pthread_sigmask(SIG_SETMASK, &editor->outside, NULL);
    if (interrupted != 0) {
        (void)putchar('\n');
        return EDITOR_INTERRUPTED;
    }
    if (line == NULL || count <= 0) {
        (void)putchar('\n');
        return EDITOR_ENDED;
    }
    /* A statement of several lines may come from the history. */
    *ret_line = alloc_copy(line, (size_t)count - (line[count - 1] == '\n' ? 1 : 0));
    return EDITOR_LINE;
}

static enum editor_end read_plain(const struct editor *editor, char **ret_line)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    if (editor->terminal) {
        (void)fputs(editor->prompt, stdout);
        (void)fflush(stdout);
    }
    size = getline(&line, &room, stdin);
    if (size < 0) {
        free(line);
        clearerr(stdin);
        return interrupted != 0 ? EDITOR_INTERRUPTED : EDITOR_ENDED;
    }
    line[strcspn(line, "\n")] = '\0';
    *ret_line = line;
    return EDITOR_LINE;
}

enum editor_end editor_read(struct editor *editor, const char *prompt, char **ret_line)
{
    const struct sigaction action = { .sa_handler = on_interrupt }; /* reads are interrupted */
    struct sigaction before;
    enum editor_end end;

    editor->prompt = prompt;
    interrupted = 0;
    (void)sigaction(SIGINT, &action, &before);
    end = editor->line != NULL ? read_edited(editor, ret_line) : read_plain(editor, ret_line);
    (void)sigaction(SIGINT, &before, NULL);
    return end;
}
