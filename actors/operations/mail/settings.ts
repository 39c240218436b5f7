/** [email]: outgoing mail (docs/reference/operations.md, Mail). */
import { z } from 'zod'
import { storedName } from '../../domain/email.js'
import {
  count,
  dependentFlag,
  flag,
  list,
  notes,
  readFilePath,
  seconds,
  secret,
  text,
  timerSeconds,
} from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const emailSettings = section(
  'email',
  {
    provider: z
      .enum(['log', 'smtp'])
      .default('log')
      .describe('log writes messages to the log; production needs smtp.'),
    smtp_host: text('mail.example.com').optional().describe('Mail server.'),
    smtp_port: z.int().min(1).max(65_535).default(587).describe('Its port.'),
    smtp_username: text('svc')
      .optional()
      .describe('SMTP account, if the server requires authentication.'),
    smtp_password: secret().optional().describe('Its password.'),
    smtp_starttls: flag(true).describe('Require STARTTLS. Mandatory in production.'),
    smtp_ca_pem_path: readFilePath('ca.pem')
      .optional()
      .describe('Additional trusted CA certificates, for a private mail server.'),
    smtp_catcher: flag(false).describe(
      'The mail server stores every message and forwards none. Allows mail to reserved names and from sandboxes. ' +
        'Not in production.',
    ),
    dev_mailbox: dependentFlag().describe(
      'Show the latest messages at /dev/mail. Needs the provider log or smtp_catcher. Not in production.',
    ),
    smtp_timeout_secs: timerSeconds(45, 5).describe('Timeout of one attempt to send a message.'),
    retry_schedule_secs: list(z.int().min(1).max(86_400))
      .default([30, 120, 600, 1_800, 7_200, 21_600])
      .describe(
        'Waits between attempts to send a message. After the last one the message has failed.',
      ),
    queue_max_per_tenant: count(1_000, 1, 1_000_000).describe(
      'Queued messages per tenant. Further messages are dropped.',
    ),
    per_address_per_day_max: count(3).describe(
      'Invitations to one address per day, over all tenants.',
    ),
    per_address_gap_secs: count(600, 0, 86_400).describe(
      'Seconds between two invitations to one address, over all tenants.',
    ),
    per_tenant_per_day_max: count(1_000).describe('Invitations per tenant and day.'),
    per_sandbox_per_day_max: count(20).describe(
      'Messages of every kind per sandbox tenant and day.',
    ),
    requests_per_name_max: count(5).describe(
      'Messages that users request (sign-up, sign-in, forgot password), per tenant, address as typed and window.',
    ),
    requests_per_address_max: count(20).describe('The same per network address and window.'),
    requests_window_secs: seconds(900, 86_400).describe('That window.'),
    from: z
      .string()
      .regex(/^[^\r\n]*[^\s@<>]+@[^\s@<>]+>?$/)
      .transform((sender) => sender.replace(/[^\s@<>]+@[^\s@<>]+/, storedName))
      .register(notes, { words: 'a mail address', example: 'svc <no-reply@example.com>' })
      .optional()
      .describe('Sender.'),
  },
  {
    about: 'Outgoing mail.',
    rules: (['smtp_host', 'from'] as const).map((key) => ({
      keys: [key, 'provider'] as [string, string],
      holds: (email) => email.provider !== 'smtp' || email[key] !== undefined,
      rule: 'be set when email.provider is smtp',
      fix: `set email.${key}`,
    })),
  },
)

export type EmailSettings = SettingsOf<typeof emailSettings>
