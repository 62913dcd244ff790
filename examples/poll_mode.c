/*
 * Poll with one pinned thread (an lcore, as DPDK calls it) on each exclusive CPU of a container, as
 * numapin announces them.
 *
 *     poll_mode FILE CONTAINER [IDLE_MICROSECONDS]
 *
 * FILE shows the annotation numapin.io/cpus of the pod: docs/notice.md has the volume for it. An
 * lcore sleeps so long after each poll that finds nothing; by default it does not sleep.
 * Build it with: gcc -O2 -static -s -pthread -o poll_mode poll_mode.c
 *
 * - New CPUs get an lcore as soon as they are in force. Then the lcores of CPUs that will leave
 *   end; once it is known when these leave, they do not wait for the new ones.
 * - The main lcore is on the lowest CPU that the program begins with: numapin takes that away last.
 *   If it leaves all the same, the lowest of the others becomes the main one.
 * - Without exclusive CPUs no lcore runs. What cannot be read changes nothing, such as a version of
 *   the annotation that this program does not know.
 *
 * The thread of main() follows the file, and is not pinned: a control thread in the words of DPDK.
 * An lcore that uses DPDK begins with rte_thread_register() and ends with rte_thread_unregister().
 *
 * Each change is printed as a line of JSON. `lost` counts how often an lcore found that its CPU had
 * been taken away before it had ended.
 */

#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_CPUS = 8192,       /* of Linux; CONFIG_NR_CPUS */
    MAX_TEXT = 256 * 1024, /* of all annotations of an object, by Kubernetes */
    LOOK_MS = 1000,        /* the file is read, and lcores are pinned, so often without an event */
    AGAIN_MS = 20,         /* a CPU that is announced may not be in force yet */
};

struct announced {
    bool cpus[MAX_CPUS];
    bool leaving[MAX_CPUS];
    bool timed; /* it is known when they leave */
};

static struct lcore {
    pthread_t thread;
    bool runs;
    atomic_bool stop;
} lcores[MAX_CPUS];

static int main_lcore = -1;
static struct timespec idle;
static atomic_uint lost;

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* ---- The file: JSON. Whatever is in it, nothing behind its end is read. ---- */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The quote that ends the string at `at`, or the end of the text. */
static const char *string_end(const char *at)
{
    for (at++; *at != '\0' && *at != '"'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return at;
}

/* What follows the value at `at`: a comma, the end of the object around it, or that of the text. */
static const char *value_end(const char *at)
{
    for (int depth = 0; *at != '\0'; at++) {
        if (*at == '"') {
            at = string_end(at);
            if (*at == '\0')
                break;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (depth-- == 0)
                break;
        } else if (*at == ',' && depth == 0) {
            break;
        }
    }
    return at;
}

/* The value of a member of the object at `at`; NULL without it, or if there is no object. */
static const char *member(const char *at, const char *name)
{
    if (at == NULL || *at != '{')
        return NULL;
    do {
        const char *key = skip_blanks(at + 1);
        const char *end = *key == '"' ? string_end(key) : key;

        if (*end != '"')
            return NULL;
        at = skip_blanks(end + 1);
        if (*at != ':')
            return NULL;
        at = skip_blanks(at + 1);
        if ((size_t)(end - key - 1) == strlen(name) && strncmp(key + 1, name, strlen(name)) == 0)
            return at;
        at = value_end(at);
    } while (*at == ',');
    return NULL;
}

/* Add the CPUs of the string at `at`, a list such as "2-3,6". */
static void parse_cpus(const char *at, bool cpus[MAX_CPUS])
{
    if (at == NULL || *at != '"')
        return;
    for (at++; isdigit((unsigned char)*at);) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;

        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (; first <= last && first < MAX_CPUS; first++)
            cpus[first] = true;
        at = *end == ',' ? end + 1 : end;
    }
}

/* False if the text is of a version that this program does not know. */
static bool parse_announced(const char *text, const char *container, struct announced *found)
{
    const char *version = member(text, "version");
    const char *mine = member(member(text, "containers"), container);
    const char *leaving = member(mine, "leaving");

    if (version != NULL && strtol(version, NULL, 10) != 1)
        return false;
    parse_cpus(member(mine, "cpus"), found->cpus);
    parse_cpus(member(leaving, "cpus"), found->leaving);
    found->timed = member(leaving, "at") != NULL;
    return true;
}

/* False without a file, as between two states of the volume, or if it cannot be used. */
static bool read_announced(const char *file, const char *container, struct announced *found)
{
    static char text[MAX_TEXT + 1];
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t count, length = 0;

    if (descriptor < 0)
        return false;
    while ((count = read(descriptor, text + length, (size_t)(MAX_TEXT - length))) > 0)
        length += count;
    close(descriptor);
    if (count < 0)
        return false;
    text[length] = '\0';
    memset(found, 0, sizeof *found);
    return parse_announced(skip_blanks(text), container, found);
}

/* ---- Lcores ---- */

/* Where the work of the program would be: take a burst from a queue; false if that is empty. */
static bool poll_once(void)
{
    return false;
}

static const size_t SET_BYTES = CPU_ALLOC_SIZE(MAX_CPUS);

static cpu_set_t *one_cpu(size_t cpu)
{
    cpu_set_t *set = CPU_ALLOC(MAX_CPUS);

    if (set == NULL)
        die("CPU_ALLOC");
    CPU_ZERO_S(SET_BYTES, set);
    CPU_SET_S(cpu, SET_BYTES, set);
    return set;
}

/* Keep a thread on its CPU. Linux before 6.2 forgets that when the container's CPUs change. */
static void pin(pthread_t thread, size_t cpu)
{
    cpu_set_t *set = one_cpu(cpu);

    if (pthread_setaffinity_np(thread, SET_BYTES, set) == EINVAL)
        lost++;
    CPU_FREE(set);
}

static void *run_lcore(void *argument)
{
    struct lcore *lcore = argument;
    int cpu = (int)(lcore - lcores);
    bool elsewhere = false;

    while (!lcore->stop) {
        if (!poll_once() && (idle.tv_sec > 0 || idle.tv_nsec > 0))
            nanosleep(&idle, NULL);
        if (sched_getcpu() == cpu)
            elsewhere = false;
        else if (!elsewhere) {
            elsewhere = true;
            pin(pthread_self(), (size_t)cpu);
        }
    }
    return NULL;
}

/* False if the container does not have the CPU yet. */
static bool start(size_t cpu)
{
    cpu_set_t *set = one_cpu(cpu);
    pthread_attr_t attributes;
    int error;

    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, SET_BYTES, set);
    lcores[cpu].stop = false;
    error = pthread_create(&lcores[cpu].thread, &attributes, run_lcore, &lcores[cpu]);
    pthread_attr_destroy(&attributes);
    CPU_FREE(set);
    if (error != 0 && error != EINVAL) {
        errno = error;
        die("pthread_create");
    }
    lcores[cpu].runs = error == 0;
    return error == 0;
}

static void stop(size_t cpu)
{
    lcores[cpu].stop = true;
    pthread_join(lcores[cpu].thread, NULL);
    lcores[cpu].runs = false;
}

/* Have lcores on the CPUs that stay, and on no others; false if some must be tried again. */
static bool place(const struct announced *found)
{
    bool done = true;

    for (size_t cpu = 0; cpu < MAX_CPUS; cpu++) {
        if (!found->cpus[cpu] || found->leaving[cpu])
            continue;
        if (lcores[cpu].runs)
            pin(lcores[cpu].thread, cpu);
        else
            done = start(cpu) && done;
    }
    for (size_t cpu = 0; cpu < MAX_CPUS; cpu++) {
        bool goes = found->leaving[cpu] && (done || found->timed);

        if (lcores[cpu].runs && (goes || !found->cpus[cpu]))
            stop(cpu);
    }
    if (main_lcore >= 0 && !lcores[main_lcore].runs)
        main_lcore = -1;
    for (int cpu = 0; cpu < MAX_CPUS && main_lcore < 0; cpu++)
        if (lcores[cpu].runs)
            main_lcore = cpu;
    return done;
}

static void print_state(void)
{
    static char shown[64 * 1024], line[sizeof shown];
    const char *comma = "";
    FILE *out = fmemopen(line, sizeof line, "w");

    if (out == NULL)
        die("fmemopen");
    fprintf(out, "{\"main\": ");
    fprintf(out, main_lcore < 0 ? "null" : "%d", main_lcore);
    fprintf(out, ", \"lcores\": [");
    for (int cpu = 0; cpu < MAX_CPUS; cpu++)
        if (lcores[cpu].runs) {
            fprintf(out, "%s%d", comma, cpu);
            comma = ", ";
        }
    fprintf(out, "], \"lost\": %u}", lost);
    fclose(out);
    if (strcmp(line, shown) != 0) {
        puts(line);
        fflush(stdout);
        strcpy(shown, line);
    }
}

/* ---- The kubelet replaces the files of a volume by renaming `..data` ---- */

static int watch_folder(const char *file)
{
    char *copy = strdup(file);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (watch < 0 || inotify_add_watch(watch, dirname(copy), IN_MOVED_TO | IN_ONLYDIR) < 0)
        die(file);
    free(copy);
    return watch;
}

/* Wait for a change in the folder, at most so long. */
static void wait_for_change(int descriptor, int milliseconds)
{
    struct pollfd waits = {.fd = descriptor, .events = POLLIN};
    char events[4096];

    if (poll(&waits, 1, milliseconds) > 0)
        while (read(descriptor, events, sizeof events) > 0)
            ; /* which file it was does not matter: the file is read in any case */
}

int main(int count, char **arguments)
{
    static struct announced found;
    long idle_us = count > 3 ? atol(arguments[3]) : 0;
    int watch;

    if (count < 3) {
        fprintf(stderr, "usage: %s FILE CONTAINER [IDLE_MICROSECONDS]\n", arguments[0]);
        return EXIT_FAILURE;
    }
    idle = (struct timespec){.tv_sec = idle_us / 1000000, .tv_nsec = idle_us % 1000000 * 1000};
    watch = watch_folder(arguments[1]); /* before the first read, so that no change is missed */
    for (;;) {
        bool done = true;

        if (read_announced(arguments[1], arguments[2], &found))
            done = place(&found);
        print_state();
        wait_for_change(watch, done ? LOOK_MS : AGAIN_MS);
    }
}
