/* What checks report: findings and what could not be checked, with texts that are safe to print. */
#include <apr_strings.h>
#include <stdarg.h>

#include "doctor/doctor_private.h"
#include "text/text.h"

enum { MESSAGE_BYTES = 600 };

void
mc_doctor_find(mc_doctor *doctor, const mc_finding *finding)
{
    mc_finding *kept = apr_array_push(doctor->report->findings);
    apr_pool_t *pool = doctor->pool;
    *kept = *finding;
    /* Names of databases, tables and files could end what a script has around them. */
    if (mc_text_has_controls(finding->subject) || mc_text_has_controls(finding->todo))
        kept->fix = NULL;
    kept->subject = mc_message_text(finding->subject, MESSAGE_BYTES, pool);
    kept->found = mc_message_text(finding->found, MESSAGE_BYTES, pool);
    kept->why = mc_message_text(finding->why, MESSAGE_BYTES, pool);
    kept->todo = mc_message_text(finding->todo, MESSAGE_BYTES, pool);
}

void
mc_doctor_miss(mc_doctor *doctor, const mc_doctor_check *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *reason = apr_pvsprintf(doctor->pool, format, arguments);
    va_end(arguments);
    APR_ARRAY_PUSH(doctor->report->gaps, mc_doctor_gap) =
        (mc_doctor_gap){ check, mc_message_text(reason, MESSAGE_BYTES, doctor->pool) };
}

const char *
mc_doctor_shell_word(const char *text, apr_pool_t *pool)
{
    if (mc_text_has_controls(text))
        return NULL;
    return apr_pstrcat(pool, "'", mc_replace_all(text, "'", "'\\''", pool), "'", NULL);
}
