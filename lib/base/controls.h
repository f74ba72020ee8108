/* Control characters of a text as blanks: what a client sent must not be able to start another line. */
#ifndef MC_BASE_CONTROLS_H
#define MC_BASE_CONTROLS_H

/* Changes the text itself, and returns it. */
static inline char *
mc_controls_blank(char *text)
{
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return text;
}

#endif
