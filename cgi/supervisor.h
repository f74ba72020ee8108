/* What the program tells the service manager that has started it (sd_notify(3), the protocol of $NOTIFY_SOCKET). */
#ifndef MC_CGI_SUPERVISOR_H
#define MC_CGI_SUPERVISOR_H

typedef enum mc_supervised_state {
    MC_SUPERVISED_SERVES,  /* the sockets are open, the configuration is loaded */
    MC_SUPERVISED_RELOADS, /* the configuration is being loaded again */
    MC_SUPERVISED_ENDS,    /* requests under way are finished */
} mc_supervised_state;

/* Does nothing where no service manager wants to know. */
void mc_supervisor_tell(mc_supervised_state state);

#endif
