/* Replaces whole files and creates folders; see whole_file.h. */
#include "base/whole_file.h"

#include "base/error.h"
#include "base/read_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *remedy(int reason)
{
    if (reason == ENOSPC || reason == EDQUOT)
        return "free some space";
    return reason == EFBIG ? "raise the limit on file sizes (ulimit -f)" : "give another output folder";
}

static hfsad_status failed(hfsad_error *err, const char *path, int reason)
{
    error_set(err, HFSAD_ERROR_IO, "%s could not be written: %s; %s", path, strerror(reason), remedy(reason));
    return HFSAD_ERROR_IO; /* a constant here, so that a checker of this file alone knows that the status is not 0 */
}

/* Shortens path, in place, to the folder that contains it: "a/b/" becomes "a", "a" becomes ".", "/a" becomes "/". */
static void cut_last(char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n == 0)
        path[n++] = '.'; /* there is room, because path was not empty */
    path[n] = 0;
}

/* A temporary name with this process's number in the same folder: a rename cannot cross file systems, and two runs do
 * not share temporaries. */
static char *temporary_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t size = strlen(path) + 40;
    char *temporary = malloc(size);
    if (temporary)
        snprintf(temporary, size, "%.*s.%s.%ld.tmp", (int)(name - path), path, name, (long)getpid());
    return temporary;
}

/* If the folder entry is a temporary file for this name: the process id of its owner; otherwise 0. */
static pid_t temporary_owner(const char *entry, const char *name)
{
    const size_t length = strlen(name);
    if (entry[0] != '.' || strncmp(entry + 1, name, length) != 0 || entry[1 + length] != '.')
        return 0;
    const char *digits = entry + length + 2;
    const size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 9 || strcmp(digits + n, ".tmp") != 0)
        return 0;
    return (pid_t)strtol(digits, NULL, 10);
}

/*
 * Whether a process no longer writes. A dead process keeps its number until its parent waits for it, and the first
 * process of a container may never do so. If /proc cannot tell, the process counts as alive.
 */
static bool is_dead(pid_t process)
{
    if (kill(process, 0) != 0)
        return errno == ESRCH;
    char path[40], line[200]; /* the name in parentheses has at most 64 bytes */
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    line[length > 0 ? length : 0] = 0;
    const char *state = strrchr(line, ')');
    return state && (!strncmp(state, ") Z", 3) || !strncmp(state, ") X", 3));
}

void folder_sweep(const char *folder, const char *const *names, size_t count)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return;
    const struct dirent *entry;
    while ((entry = readdir(entries))) {
        for (size_t i = 0; i < count; i++) {
            const pid_t owner = temporary_owner(entry->d_name, names[i]);
            if (owner > 0 && is_dead(owner))
                unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    closedir(entries);
}

static void forget(whole_file *f)
{
    free(f->path);
    free(f->temporary);
    *f = (whole_file){0};
}

void whole_file_drop(whole_file *f)
{
    if (f->stream)
        fclose(f->stream);
    if (f->temporary)
        unlink(f->temporary);
    forget(f);
}

/* Takes ownership of path; NULL: it could not be allocated. */
static hfsad_status begin_file(whole_file *f, char *path, mode_t mode, hfsad_error *err)
{
    *f = (whole_file){.path = path, .temporary = path ? temporary_name(path) : NULL};
    if (!f->temporary) {
        forget(f);
        error_memory(err, 0, "a file name");
        return HFSAD_ERROR_MEMORY;
    }
    unlink(f->temporary); /* left by an earlier process with the same number that was killed */
    const int fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    f->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (f->stream)
        return HFSAD_OK;
    const hfsad_status status = failed(err, f->path, errno);
    if (fd >= 0) {
        close(fd);
        unlink(f->temporary);
    }
    forget(f);
    return status;
}

hfsad_status whole_file_begin(whole_file *f, const char *folder, const char *name, hfsad_error *err)
{
    return begin_file(f, path_join(folder, name), 0666, err);
}

hfsad_status whole_file_open(whole_file *f, const char *path, mode_t mode, hfsad_error *err)
{
    const hfsad_status status = begin_file(f, strdup(path), mode, err);
    if (!status && !(mode & 077))
        setvbuf(f->stream, NULL, _IONBF, 0); /* avoids a copy in a buffer that is not wiped */
    return status;
}

void whole_file_put(whole_file *f, const void *bytes, size_t count)
{
    if (!f->reason && fwrite(bytes, 1, count, f->stream) != count)
        f->reason = errno ? errno : EIO;
}

void whole_file_put_field(whole_file *f, const char *text, const char *suffix)
{
    const bool quoted = text[strcspn(text, ",\"\r\n")];
    whole_file_put(f, "\"", quoted);
    for (; quoted && *text; text++)
        whole_file_put(f, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    whole_file_put(f, text, strlen(text));
    whole_file_put(f, suffix, strlen(suffix));
    whole_file_put(f, "\"", quoted);
}

hfsad_status whole_file_close(whole_file *f, hfsad_error *err)
{
    int reason = f->reason;
    errno = 0;
    if (!reason && (fflush(f->stream) != 0 || ferror(f->stream) || fsync(fileno(f->stream)) != 0))
        reason = errno ? errno : EIO;
    if (fclose(f->stream) != 0 && !reason)
        reason = errno;
    f->stream = NULL;
    if (!reason)
        return HFSAD_OK;
    const hfsad_status status = failed(err, f->path, reason);
    whole_file_drop(f);
    return status;
}

hfsad_status whole_file_replace(whole_file *f, hfsad_error *err)
{
    if (rename(f->temporary, f->path) != 0) {
        const hfsad_status status = failed(err, f->path, errno);
        whole_file_drop(f);
        return status;
    }
    forget(f);
    return HFSAD_OK;
}

hfsad_status whole_file_place(whole_file *f, hfsad_error *err)
{
    const hfsad_status status = link(f->temporary, f->path) == 0 ? HFSAD_OK : failed(err, f->path, errno);
    whole_file_drop(f);
    return status;
}

hfsad_status folder_sync(const char *folder, hfsad_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems cannot sync a folder and return EINVAL; the files themselves are synced. */
    const bool bad = fd < 0 || (fsync(fd) != 0 && errno != EINVAL);
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    return bad ? failed(err, folder, reason) : HFSAD_OK;
}

hfsad_status whole_file_end(whole_file *f, hfsad_error *err)
{
    hfsad_status status = whole_file_close(f, err);
    if (status)
        return status;
    char *folder = strdup(f->path);
    if (!folder) {
        whole_file_drop(f);
        return error_memory(err, 0, "a file name");
    }
    cut_last(folder);
    status = whole_file_replace(f, err);
    if (!status)
        status = folder_sync(folder, err);
    free(folder);
    return status;
}

hfsad_status whole_file_write(const char *folder, const char *name, const void *bytes, size_t count, hfsad_error *err)
{
    whole_file f;
    const hfsad_status status = whole_file_begin(&f, folder, name, err);
    if (status)
        return status;
    whole_file_put(&f, bytes, count);
    return whole_file_end(&f, err);
}

static hfsad_status folder_failed(hfsad_error *err, const char *path, int reason)
{
    return error_set(err, HFSAD_ERROR_INPUT, "output folder %s cannot be used: %s; give another output folder", path,
                     strerror(reason));
}

hfsad_status folder_check(const char *path, hfsad_error *err)
{
    char *at = strdup(*path ? path : ".");
    if (!at)
        return error_memory(err, strlen(path), "a file name");
    struct stat info;
    int reason = 0;
    while (stat(at, &info) != 0 && !reason) {
        if (errno != ENOENT || !strcmp(at, ".") || !strcmp(at, "/"))
            reason = errno;
        else
            cut_last(at);
    }
    if (!reason && !S_ISDIR(info.st_mode))
        reason = ENOTDIR;
    if (!reason && access(at, W_OK | X_OK) != 0)
        reason = errno;
    free(at);
    return reason ? folder_failed(err, path, reason) : HFSAD_OK;
}

static bool is_hidden(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return name[0] == '.' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Whether data is path or a folder above it, and no name between them would be skipped by a reader of the folder; -1:
 * no memory. */
static int is_within(const char *path, const struct stat *data)
{
    struct stat info;
    bool hidden = false;
    char *at = strdup(path);
    for (; at && stat(at, &info) != 0 && strcmp(at, ".") != 0 && strcmp(at, "/") != 0; cut_last(at))
        hidden |= is_hidden(at);
    char *full = at ? realpath(at, NULL) : NULL;
    const bool lost = !at || (!full && errno == ENOMEM);
    free(at);
    bool within = false;
    while (full && !hidden && !within) {
        within = stat(full, &info) == 0 && info.st_dev == data->st_dev && info.st_ino == data->st_ino;
        hidden = is_hidden(full);
        if (!strcmp(full, "/"))
            break;
        cut_last(full);
    }
    free(full);
    return lost ? -1 : within;
}

hfsad_status folder_check_outside(const char *path, const char *data, hfsad_error *err)
{
    struct stat info;
    if (stat(data, &info) != 0 || !S_ISDIR(info.st_mode))
        return HFSAD_OK;
    const int within = is_within(path, &info);
    if (within < 0)
        return error_memory(err, strlen(path), "a file name");
    if (within)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.300s is in the data folder %.300s, whose files are clients; give another output folder",
                         path, data);
    return HFSAD_OK;
}

/* Removes the folders at[0 … j), for j from last down to first, which this process created. */
static void unmake(char *at, size_t first, size_t last)
{
    for (size_t j = last; first && j >= first; j--) {
        if (at[j] == '/' || !at[j]) {
            at[j] = 0;
            rmdir(at);
        }
    }
}

void folder_unmake(const char *path, size_t made)
{
    char *at = made ? strdup(path) : NULL;
    if (at)
        unmake(at, made, strlen(at));
    free(at);
}

hfsad_status folder_make(const char *path, hfsad_error *err)
{
    size_t made;
    return folder_make_new(path, &made, err);
}

/* Returns an errno. */
static int make_folders(const char *path, mode_t mode, size_t *made)
{
    char *at = strdup(*path ? path : ".");
    *made = 0;
    if (!at)
        return ENOMEM;
    size_t first = 0, i = 1; /* end of the first folder that was created here; 0: none */
    int reason = 0;
    for (;; i++) {
        const char kept = at[i];
        if (kept && kept != '/')
            continue;
        at[i] = 0;
        if (mkdir(at, mode) == 0)
            first = first ? first : i;
        else if (errno != EEXIST)
            reason = errno;
        at[i] = kept;
        if (reason || !kept)
            break;
    }
    struct stat info;
    if (!reason && stat(at, &info) != 0)
        reason = errno;
    if (!reason && !S_ISDIR(info.st_mode))
        reason = ENOTDIR;
    if (!reason && access(at, W_OK | X_OK) != 0)
        reason = errno;
    if (reason)
        unmake(at, first, i);
    else
        *made = first;
    free(at);
    return reason;
}

hfsad_status folder_make_new(const char *path, size_t *made, hfsad_error *err)
{
    const int reason = make_folders(path, 0777, made);
    return reason ? folder_failed(err, path, reason) : HFSAD_OK;
}

hfsad_status folder_make_state(const char *path, size_t *made, hfsad_error *err)
{
    const int reason = make_folders(path, 0700, made);
    if (!reason)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "state folder %s cannot be used: %s; give another state folder", path,
                     strerror(reason));
}

hfsad_status folder_lock(const char *path, int *lock, hfsad_error *err)
{
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return folder_failed(err, path, errno);
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return HFSAD_OK;
    const int reason = errno;
    folder_unlock(*lock);
    *lock = -1;
    if (reason != EWOULDBLOCK)
        return HFSAD_OK;
    return error_set(err, HFSAD_ERROR_INPUT, "another run is writing to %s; wait for its end or give another folder",
                     path);
}

void folder_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

hfsad_status file_check_output(const char *output, const char *const *inputs, size_t count, hfsad_error *err)
{
    struct stat out, in;
    if (stat(output, &out) != 0)
        return HFSAD_OK;
    for (size_t i = 0; i < count; i++)
        if (inputs[i] && stat(inputs[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return error_set(err, HFSAD_ERROR_INPUT, "%.300s is an input and would be replaced; give another output",
                             output);
    return HFSAD_OK;
}
