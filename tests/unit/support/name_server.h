/*
 * What the C library answers is said here: its getaddrinfo() is replaced in a program that names one of these
 * functions. A name that ends in ".known" has the address 127.0.0.1, one in ".unknown" has none, and one in ".hangs"
 * has the address 127.0.0.1 once name_server_answer() was called; all others have what the machine says.
 */
#ifndef MC_TESTS_NAME_SERVER_H
#define MC_TESTS_NAME_SERVER_H

/* How many names were asked for. */
int name_server_questions(void);

/* Answers all that hang, now and from now on; returns when nobody is waiting any more. */
void name_server_answer(void);

#endif
