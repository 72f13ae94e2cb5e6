/* A disk that fails on command: preloaded into the program by LD_PRELOAD, built by `failing_disk.rs`.
 *
 * Intercepts writes and syncs of the store, the archive of runs, their logs and the file of owed units. Orders are in the
 * file named by FAILING_DISK_ORDERS, which is read at every call: "3 torn-write 2" is the third order, for the second write
 * from then on. Without a file, with an empty file or an unknown order, all calls pass. Orders that end in "-owed" also
 * apply to the file of owed units: "torn-write-owed" kills the program within a write to it, and fails all writes to the
 * store.
 *
 * Limits: written data stays written, as after the death of a process; the loss of unsynced data, as after a power cut, is
 * not simulated. "enospc" also fails overwriting, as on a copy-on-write file system. Writes through mapped memory (the index
 * of the log, which is rebuilt at every start) are not intercepted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum call { WRITE, SYNC, RESIZE };
enum file { OTHER, STORE, OWED };
enum fate { PASS, FAIL, HALF, WHOLE };

struct order {
    char word[32];
    long number, at;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static long order_seen = -1, writes, syncs;

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

static ssize_t written(int fd, const void *bytes, size_t count) {
    static ssize_t (*call)(int, const void *, size_t);
    call = call ? call : real("write");
    return call(fd, bytes, count);
}

static ssize_t written_at(int fd, const void *bytes, size_t count, off64_t at) {
    static ssize_t (*call)(int, const void *, size_t, off64_t);
    call = call ? call : real("pwrite64");
    return call(fd, bytes, count, at);
}

static enum file file_of(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return OTHER;
    path[length] = 0;
    if (strstr(path, "scoregate.owed"))
        return OWED;
    return (strstr(path, "scoregate.db") || strstr(path, "runs.db")) && !strstr(path, ".db-shm") ? STORE : OTHER;
}

static struct order read_order(void) {
    struct order order = {"", 0, 0};
    char text[64];
    const char *path = getenv("FAILING_DISK_ORDERS");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return order;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length < 0 ? 0 : length] = 0;
    sscanf(text, "%ld %31s %ld", &order.number, order.word, &order.at);
    return order;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* The outcome of a call on the file of owed units. Other orders do not apply to it. */
static enum fate decide_owed(const struct order *order, enum call call) {
    if (call == WRITE && !strcmp(order->word, "torn-write-owed"))
        return HALF;
    int is_ordered = !strcmp(order->word, call == SYNC ? "eio-sync-owed" : "eio-write-owed");
    if (is_ordered)
        errno = EIO;
    return is_ordered ? FAIL : PASS;
}

static int begins(const char *word, const char *head) { return !strncmp(word, head, strlen(head)); }

/* The outcome of a call: it passes, it fails with the error in errno, or the program dies after half or all of its work.
 * A death before the call happens here. */
static enum fate decide(int fd, enum call call) {
    int saved = errno;
    enum file file = file_of(fd);
    if (file == OTHER) {
        errno = saved;
        return PASS;
    }
    pthread_mutex_lock(&turn);
    struct order order = read_order();
    if (file == OWED) {
        pthread_mutex_unlock(&turn);
        errno = saved;
        return decide_owed(&order, call);
    }
    if (order.number != order_seen) {
        order_seen = order.number;
        writes = syncs = 0;
    }
    int is_write = call == WRITE && ++writes == order.at, is_sync = call == SYNC && ++syncs == order.at;
    enum fate fate = PASS;
    errno = saved;
    if ((is_sync && !strcmp(order.word, "kill-before-sync")) || (is_write && !strcmp(order.word, "kill-before-write")))
        die();
    if (is_write && !strcmp(order.word, "torn-write"))
        fate = HALF;
    if (is_sync && !strcmp(order.word, "kill-after-sync"))
        fate = WHOLE;
    if (begins(order.word, call == SYNC ? "eio-sync" : "eio-write"))
        fate = FAIL, errno = EIO;
    if (call == WRITE && !strcmp(order.word, "torn-write-owed"))
        fate = FAIL, errno = EIO;
    if (call != SYNC && !strcmp(order.word, "enospc"))
        fate = FAIL, errno = ENOSPC;
    pthread_mutex_unlock(&turn);
    return fate;
}

static ssize_t guarded_write(int fd, const void *bytes, size_t count, off64_t at, int is_placed) {
    enum fate fate = decide(fd, WRITE);
    if (fate == FAIL)
        return -1;
    size_t part = fate == HALF ? count / 2 : count;
    ssize_t done = is_placed ? written_at(fd, bytes, part, at) : written(fd, bytes, part);
    if (fate == HALF)
        die();
    return done;
}

static int guarded_sync(int fd, const char *name) {
    enum fate fate = decide(fd, SYNC);
    if (fate == FAIL)
        return -1;
    int done = ((int (*)(int))real(name))(fd);
    if (fate == WHOLE)
        die();
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count) { return guarded_write(fd, bytes, count, 0, 0); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return guarded_write(fd, bytes, count, at, 1); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) { return guarded_write(fd, bytes, count, at, 1); }
int fsync(int fd) { return guarded_sync(fd, "fsync"); }
int fdatasync(int fd) { return guarded_sync(fd, "fdatasync"); }

int ftruncate64(int fd, off64_t size) {
    return decide(fd, RESIZE) == FAIL ? -1 : ((int (*)(int, off64_t))real("ftruncate64"))(fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int fallocate64(int fd, int mode, off64_t at, off64_t size) {
    return decide(fd, RESIZE) == FAIL
               ? -1
               : ((int (*)(int, int, off64_t, off64_t))real("fallocate64"))(fd, mode, at, size);
}
int fallocate(int fd, int mode, off_t at, off_t size) { return fallocate64(fd, mode, at, size); }
