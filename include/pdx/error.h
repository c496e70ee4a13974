/* SPDX-License-Identifier: Apache-2.0
 *
 * One error convention for the whole library. A function that can fail
 * returns 0 or a count, or a negative enum pdx_err value; errno is not part
 * of the interface. The last parameter of such a function is an optional
 * struct pdx_error that also carries what kind of error it is, what it cost,
 * and a sentence that says which object, which values and what to change.
 */
#ifndef PDX_ERROR_H
#define PDX_ERROR_H

#include <pdx/api.h>

PDX_BEGIN_DECLS

enum pdx_err {
    PDX_OK = 0,
    PDX_EINVAL = -1,        /* an argument is wrong; the text names it */
    PDX_ENOMEM = -2,        /* no memory */
    PDX_ERANGE = -3,        /* an index, offset or length leaves its region or tensor */
    PDX_EOVERFLOW = -4,     /* sizes do not fit in 64 bits */
    PDX_EAGAIN = -5,        /* a limit set at creation is reached; try again when something ended */
    PDX_ETIMEDOUT = -6,     /* a wait ran out; nothing changed */
    PDX_EBUSY = -7,         /* the object is in use */
    PDX_ENOENT = -8,        /* there is no such object */
    PDX_ENOSPC = -9,        /* the caller's buffer is too small */
    PDX_EACCESS = -10,      /* the region does not grant this right, or its key is wrong */
    PDX_EPROTO = -11,       /* bytes that do not follow the format */
    PDX_EVERSION = -12,     /* the peer speaks another protocol version */
    PDX_EMISMATCH = -13,    /* two layouts do not fit together */
    PDX_ESTATE_TYPE = -14,  /* a state type that the library does not know */
    PDX_ESTALE = -15,       /* the peer restarted, or the region was deregistered */
    PDX_EPEER = -16,        /* the peer cannot be reached, or was lost */
    PDX_ECANCELLED = -17,   /* cancelled by the caller */
    PDX_EDEADLINE = -18,    /* the deadline passed */
    PDX_ESHUTDOWN = -19,    /* the engine is being destroyed */
    PDX_EUNSUPPORTED = -20, /* not possible in this build, on this machine or for this pair */
    PDX_EREACTOR = -21,     /* a blocking call from a callback (it would wait for itself) */
    PDX_ESYS = -22,         /* the operating system refused; the text has its reason */
    PDX_EREMOTE = -23       /* the peer reported a failure of its own; the text is its */
};

/* What a caller can do about an error. */
enum pdx_error_class {
    PDX_CLASS_NONE = 0,  /* no error */
    PDX_CLASS_CALLER,    /* the call was wrong; the same call will fail again */
    PDX_CLASS_RETRY,     /* the same call may succeed later */
    PDX_CLASS_RECONNECT, /* succeeds once the peer is back or its new descriptor is added */
    PDX_CLASS_FATAL      /* this engine or machine cannot do it */
};

/* What an error has cost. */
enum pdx_error_cost {
    PDX_COST_NONE = 0, /* nothing was started */
    PDX_COST_TRANSFER, /* this transfer */
    PDX_COST_PEER,     /* every transfer of this peer */
    PDX_COST_ENGINE    /* every transfer of this engine */
};

#define PDX_ERROR_TEXT_MAX 2048

struct pdx_error {
    int code; /* enum pdx_err */
    enum pdx_error_class error_class;
    enum pdx_error_cost cost;
    char text[PDX_ERROR_TEXT_MAX]; /* always terminated; cut at a whole character when too long */
};

/* The name of a code, for example "PDX_ERANGE"; "PDX_E?" for a value that is none.
 * Thread: any. Lifetime: static string. Errors: none. */
PDX_API const char *pdx_err_name(int code);

/* The class that errors of this code have unless a text says otherwise.
 * Thread: any. Errors: none; PDX_CLASS_NONE for 0 and for unknown codes. */
PDX_API enum pdx_error_class pdx_err_class(int code);

/* The name of a class: "none", "caller", "retry", "reconnect", "fatal".
 * Thread: any. Lifetime: static string. Errors: none. */
PDX_API const char *pdx_error_class_name(enum pdx_error_class error_class);

PDX_END_DECLS

#endif
