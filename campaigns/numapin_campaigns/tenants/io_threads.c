/* Makes threads of io_uring, which choose their CPUs without regard to their cgroup.
 *
 * gcc -O1 -Wall -Werror -pthread -o io_threads io_threads.c; ./io_threads FIFO
 *
 * Each line on standard input is a command, answered by one line, `ok` or the error:
 *   ring    opens a ring; the kernel remembers the CPUs of this moment for its workers
 *   worker  the ring makes one more worker, which waits until somebody writes to FIFO
 *   sqpoll  opens a ring with a thread that polls it, and soon sleeps
 *   threads N  starts N threads that sleep
 *   name N  names the calling thread N, as any thread may
 * Raw system calls: liburing is not needed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ring = -1;
static unsigned *tail, *mask, *array;
static struct io_uring_sqe *entries;

static int open_ring(unsigned flags)
{
	struct io_uring_params p = { .flags = flags, .sq_thread_idle = 1 };
	int file = syscall(__NR_io_uring_setup, 64, &p);
	if (file < 0 || flags)
		return file < 0 ? errno : 0;
	char *queue = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, file, IORING_OFF_SQ_RING);
	entries = mmap(0, p.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, file, IORING_OFF_SQES);
	if (queue == MAP_FAILED || entries == MAP_FAILED)
		return errno;
	tail = (unsigned *)(queue + p.sq_off.tail);
	mask = (unsigned *)(queue + p.sq_off.ring_mask);
	array = (unsigned *)(queue + p.sq_off.array);
	ring = file;
	return 0;
}

static int make_worker(const char *fifo)
{
	unsigned at = *tail & *mask;
	struct io_uring_sqe *one = &entries[at];
	memset(one, 0, sizeof *one);
	one->opcode = IORING_OP_OPENAT;
	one->flags = IOSQE_ASYNC;
	one->fd = AT_FDCWD;
	one->addr = (unsigned long)fifo;
	one->open_flags = O_RDONLY;
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(__NR_io_uring_enter, ring, 1, 0, 0, 0, 0) < 0 ? errno : 0;
}

static void *wait_for_ever(void *nothing)
{
	while (1)
		pause();
	return nothing;
}

static int start_threads(int count)
{
	pthread_attr_t small;
	pthread_t thread;
	int error = pthread_attr_init(&small) ?: pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	for (; !error && count > 0; count--)
		error = pthread_create(&thread, &small, wait_for_ever, 0);
	return error;
}

int main(int argc, char **argv)
{
	char line[128];
	while (argc == 2 && fgets(line, sizeof line, stdin)) {
		int error = EINVAL;
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "ring"))
			error = open_ring(0);
		else if (!strcmp(line, "sqpoll"))
			error = open_ring(IORING_SETUP_SQPOLL);
		else if (!strcmp(line, "worker") && ring >= 0)
			error = make_worker(argv[1]);
		else if (!strncmp(line, "threads ", 8))
			error = start_threads(atoi(line + 8));
		else if (!strncmp(line, "name ", 5))
			error = prctl(PR_SET_NAME, line + 5) < 0 ? errno : 0;
		puts(error ? strerror(error) : "ok");
		fflush(stdout);
	}
	return 0;
}
