/*
 * The module hfsad._net: a process of a federation. It has a copy of libhfsad of its own; handles come from hfsad._core
 * in capsules.
 */
#include "binding.h"

#include <hfsad/net.h>
#include <unistd.h>

static PyTypeObject *member_type;

typedef struct {
    PyObject_HEAD hfsad_member *member;
    PyObject *keep;               /* objects that the member borrows from */
    PyObject *turn, *log, *ended; /* callables or None */
    PyObject *type, *value, *trace;
    atomic_bool failed;
    double looked;
    uint64_t round;
    pid_t owner;
    atomic_bool busy;
} MemberObject;

/* ---- callbacks; any thread of the member may call ---- */

static void tell(MemberObject *self, PyObject *callback, PyObject *told, bool *proceed)
{
    PyObject *answer = told ? PyObject_CallObject(callback, told) : NULL;
    if (proceed && answer == Py_False)
        *proceed = false;
    Py_XDECREF(answer);
    Py_XDECREF(told);
    if (PyErr_Occurred() && !atomic_exchange(&self->failed, true))
        PyErr_Fetch(&self->type, &self->value, &self->trace);
    PyErr_Clear(); /* only the first exception counts */
}

static bool on_turn(void *context, const hfsad_turn *turn)
{
    MemberObject *self = context;
    const double now = seconds_now();
    if (atomic_load(&self->failed))
        return false;
    if (turn->round == self->round && now < self->looked + 0.1)
        return true;
    self->round = turn->round;
    self->looked = now;
    bool proceed = true;
    const PyGILState_STATE gil = PyGILState_Ensure();
    if (PyErr_CheckSignals())
        tell(self, self->turn, NULL, &proceed);
    else if (self->turn != Py_None)
        tell(self, self->turn,
             Py_BuildValue("KN", (unsigned long long)turn->round,
                           turn->figures ? figures_tuple(turn->figures, Py_NewRef(Py_None)) : Py_NewRef(Py_None)),
             &proceed);
    PyGILState_Release(gil);
    return proceed && !atomic_load(&self->failed);
}

static void on_log(void *context, const hfsad_log *line)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    MemberObject *self = context;
    if (self->log == Py_None)
        return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    tell(self, self->log, Py_BuildValue("sssss", levels[line->level], line->node, line->event, line->text, line->topic),
         NULL);
    PyGILState_Release(gil);
}

static void on_ended(void *context, const hfsad_member_end *end)
{
    MemberObject *self = context;
    if (self->ended == Py_None)
        return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    tell(self, self->ended, Py_BuildValue("sss", hfsad_stop_name(end->stop), end->table, end->line), NULL);
    PyGILState_Release(gil);
}

static int raise_kept(MemberObject *self)
{
    if (!self->type)
        return 0;
    PyErr_Restore(self->type, self->value, self->trace);
    self->type = self->value = self->trace = NULL;
    return -1;
}

/* ---- the object ---- */

/* Arguments as hfsad_member_settings has them; spec and data are capsules. */
static int parse(MemberObject *self, PyObject *args, PyObject *names, hfsad_spec **spec, hfsad_member_settings *s)
{
    static char *words[] = {"spec",   "data",  "keep",   "role",      "name",     "all_of",          "nodes",
                            "broker", "above", "below",  "keys",      "ca",       "certificate",     "key",
                            "state",  "out",   "record", "metrics",   "insecure", "durable_process", "linger",
                            "turn",   "log",   "ended",  "data_file", "secret",   "audit",           NULL};
    PyObject *spec_capsule, *data_capsule;
    int role, insecure, process;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OOOizzzzzzzzzzzzzzppdOOOzzz", words, &spec_capsule, &data_capsule,
                                     &self->keep, &role, &s->name, &s->all_of, &s->nodes, &s->broker, &s->above,
                                     &s->below, &s->keys, &s->ca, &s->certificate, &s->key, &s->state, &s->out,
                                     &s->record, &s->metrics, &insecure, &process, &s->linger, &self->turn, &self->log,
                                     &self->ended, &s->data_file, &s->secret, &s->audit)) {
        self->keep = self->turn = self->log = self->ended = NULL; /* borrowed so far */
        return -1;
    }
    Py_INCREF(self->keep);
    Py_INCREF(self->turn);
    Py_INCREF(self->log);
    Py_INCREF(self->ended);
    s->role = (hfsad_role)role;
    s->insecure = insecure;
    s->state_process = process;
    *spec = PyCapsule_GetPointer(spec_capsule, SPEC_CAPSULE);
    s->data = data_capsule == Py_None ? NULL : PyCapsule_GetPointer(data_capsule, DATA_CAPSULE);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *member_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    hfsad_spec *spec;
    hfsad_error err;
    MemberObject *self = (MemberObject *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    hfsad_member_settings s = {.size = sizeof s, .context = self, .turn = on_turn, .log = on_log, .ended = on_ended};
    self->owner = getpid();
    if (!parse(self, args, names, &spec, &s)) {
        PyThreadState *saved = PyEval_SaveThread();
        const hfsad_status status = hfsad_member_create(&self->member, spec, &s, &err);
        PyEval_RestoreThread(saved);
        if (!raise_kept(self) && status)
            raise_status(status, &err);
    }
    if (PyErr_Occurred())
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void member_free(PyObject *object)
{
    MemberObject *self = (MemberObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->owner == getpid()) {
        PyThreadState *saved = PyEval_SaveThread();
        hfsad_member_free(self->member);
        PyEval_RestoreThread(saved);
    }
    Py_XDECREF(self->keep);
    Py_XDECREF(self->turn);
    Py_XDECREF(self->log);
    Py_XDECREF(self->ended);
    Py_XDECREF(self->type);
    Py_XDECREF(self->value);
    Py_XDECREF(self->trace);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *member_run(PyObject *object, PyObject *nothing)
{
    MemberObject *self = (MemberObject *)object;
    hfsad_stop stop;
    hfsad_error err;
    (void)nothing;
    if (check_handle(self->member, self->owner) || !begin_use(&self->busy))
        return NULL;
    PyThreadState *saved = PyEval_SaveThread();
    const hfsad_status status = hfsad_member_run(self->member, &stop, &err);
    PyEval_RestoreThread(saved); /* it stays in use: a member runs once */
    if (raise_kept(self))
        return NULL;
    return status ? raise_status(status, &err) : PyUnicode_FromString(hfsad_stop_name(stop));
}

static PyObject *member_cancel(PyObject *object, PyObject *nothing)
{
    MemberObject *self = (MemberObject *)object;
    (void)nothing;
    if (check_handle(self->member, self->owner))
        return NULL;
    hfsad_member_cancel(self->member);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"run", member_run, METH_NOARGS, "Runs until the run has ended or is cancelled; why it stopped."},
    {"cancel", member_cancel, METH_NOARGS, "Ends run() within about a second; from any thread."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, member_new},
                              {Py_tp_dealloc, member_free},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "A process of a federation: the cloud, an edge, a client."},
                              {0, NULL}};
static PyType_Spec member_type_spec = {"hfsad._net.Member", sizeof(MemberObject), 0, Py_TPFLAGS_DEFAULT, slots};

static struct PyModuleDef module_def = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "hfsad._net",
    .m_doc = "Processes of a federation. The package hfsad has the classes for users.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__net(void);

PyMODINIT_FUNC PyInit__net(void)
{
    PyObject *module = PyModule_Create(&module_def);
    diverged_error = PyExc_ArithmeticError; /* hfsad.DivergedError is one; a member never raises it */
    member_type = module ? (PyTypeObject *)PyType_FromSpec(&member_type_spec) : NULL;
    if (module && (!member_type || PyModule_AddType(module, member_type)))
        Py_CLEAR(module);
    return module;
}
