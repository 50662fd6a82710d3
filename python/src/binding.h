/*
 * hfsad._core: the handles of hfsad/hfsad.h as Python objects. C does the marshalling, the package the classes.
 *
 * Only the limited API of CPython 3.11 is used, so one binary serves 3.11 and later. Arrays come and go by the buffer
 * protocol: no header of numpy is needed.
 *
 * Every object remembers the process that made it. A child of fork has no threads of a run, so it must not free one.
 */
#ifndef HFSAD_PYTHON_BINDING_H
#define HFSAD_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <hfsad/hfsad.h>
#include <stdatomic.h>
#include <sys/types.h>

typedef struct {
    PyObject_HEAD hfsad_spec *spec;
} SpecObject;

enum { DATA_VIEWS = 8 };

typedef struct {
    PyObject_HEAD hfsad_data *data;
    size_t rows, features;
    Py_buffer views[DATA_VIEWS]; /* arrays that the data borrows */
    size_t n_views;
} DataObject;

/* A loss in Python: see own_loss.c. */
typedef struct {
    PyObject_HEAD PyObject *open, *value, *gradient, *prox; /* callables; NULL: not given */
    PyObject *clients;                                      /* node -> the result of `open` for its rows */
    PyObject *error;                                        /* the first exception that a callable raised */
    _Atomic(hfsad_run *) run;                               /* an exception cancels it */
    atomic_bool failed;
} LossObject;

/* What a run and a path have besides their handle. */
typedef struct {
    PyObject *data, *loss; /* objects that the handle borrows from; NULL: none */
    pid_t process;         /* process that made the handle; no other process may use it */
    atomic_bool busy;
} Keeper;

typedef struct {
    PyObject_HEAD hfsad_run *run;
    Keeper keep;
} RunObject;

typedef struct {
    PyObject_HEAD hfsad_result *result;
} ResultObject;

typedef struct {
    PyObject_HEAD hfsad_path *path;
    Keeper keep;
} PathObject;

/* Types of the module, made once when it is loaded. */
extern PyTypeObject *spec_type, *data_type, *loss_type, *run_type, *result_type, *path_type, *array_type;
extern PyType_Spec spec_type_spec, data_type_spec, loss_type_spec, run_type_spec, result_type_spec, path_type_spec,
    array_type_spec;
extern PyObject *diverged_error;

/* Sets the exception for the status; returns NULL, so that a caller can return it. */
PyObject *raise_status(hfsad_status status, const hfsad_error *err);
/* Returns None, or NULL with the exception set. */
PyObject *none_or_raise(hfsad_status status, const hfsad_error *err);

/* A read-only array of doubles that belongs to `owner`, which lives as long as the array. */
PyObject *array_of(PyObject *owner, const double *at, size_t count);

/* A PyArg_ParseTuple converter: a path, as str or os.PathLike, to bytes. */
#define PATH_CONVERTER PyUnicode_FSConverter

/* The UTF-8 texts of a sequence of str, of `count` if that is not SIZE_MAX; *keep owns the texts. NULL: an exception.
 */
const char **texts_of(PyObject *sequence, size_t count, PyObject **keep, size_t *found);

/* The members of hfsad.Progress; takes the reference to polish. */
PyObject *figures_tuple(const hfsad_figures *figures, PyObject *polish);

/* The name of a setting -> its value as text. */
PyObject *spec_dict(const hfsad_spec *spec);

/* Attaches the own loss to the spec before a run or a path is made; NULL loss: nothing to do. */
hfsad_status loss_attach(LossObject *loss, hfsad_spec *spec, hfsad_error *err);
/* Raises the exception that the loss has met: -1; 0: there was none. */
int loss_raise(LossObject *loss);

/* A converter for "object of that type or None". */
int data_or_none(PyObject *object, void *to);
int loss_or_none(PyObject *object, void *to);

/* Names of the capsules in which handles go from hfsad._core to hfsad._net. */
#define SPEC_CAPSULE "hfsad_spec"
#define DATA_CAPSULE "hfsad_data"

/* Only one thread at a time may use a handle: false and an exception if it is in use. */
bool begin_use(atomic_bool *busy);
/* -1 and an exception if another process made the handle, or its constructor did not run. */
int check_handle(const void *handle, pid_t owner);

/* Keeps references to data and loss, and makes the handle by `make` without the interpreter lock. false: an
 * exception. */
bool keeper_make(Keeper *keep, SpecObject *spec, DataObject *data, LossObject *loss,
                 hfsad_status (*make)(void *context, hfsad_error *err), void *context);
/* Frees the object and, in the process that made it, its handle by `release`. */
void keeper_free(PyObject *object, Keeper *keep, void (*release)(void *handle), void *handle);

PyObject *result_wrap(hfsad_result *result);
/* (kind, gap, text) */
PyObject *verdict_tuple(const hfsad_verdict *verdict);

/* A Python callback of training in C, which runs without the interpreter lock. */
typedef struct {
    PyObject *callback; /* NULL: only checks for signals, ten times a second */
    PyThreadState *saved;
    PyObject *type, *value, *trace; /* its exception, kept apart because losses may be called after it */
    double looked;
} Caller;

double seconds_now(void);

/* Between caller_begin and caller_end, objects may be touched only inside caller_ask. */
void caller_begin(Caller *caller, PyObject *callback);
/* Takes the interpreter lock for a moment, checks for signals, and calls the callback with the result of `make`. false:
 * end the training. */
bool caller_ask(Caller *caller, PyObject *(*make)(const void *from), const void *from);
/* -1: an exception is set. */
int caller_end(Caller *caller);

#endif
