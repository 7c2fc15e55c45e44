/* hocket: the public C API. The only installed header. */
#ifndef HOCKET_HOCKET_H
#define HOCKET_HOCKET_H
#endif
