/** [phone] and [sms]: text messages and the codes in them. */
import { z } from 'zod'
import {
  count,
  flag,
  list,
  notes,
  seconds,
  secret,
  text,
  url,
} from '../../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../../runtime/kernel/config/section.js'

const DAY_SECS = 86_400
const TWILIO_KEYS = ['twilio_account_sid', 'twilio_auth_token', 'twilio_from'] as const
type TwilioSettings = { readonly provider: string } & {
  readonly [key in (typeof TWILIO_KEYS)[number]]?: string | undefined
}

export const phoneSettings = section(
  'phone',
  {
    enabled: flag(false).describe('Users may prove a phone number on their account page.'),
    provider: z
      .enum(['none', 'log', 'http', 'twilio'])
      .default('none')
      .describe(
        'Sends the messages. none disables everything by phone. log writes them to the log and is refused in production.',
      ),
    http_url: url(['https:'], 'an https URL', 'https://sms.example.com/send')
      .optional()
      .describe('With http: receives a signed POST for each text message.'),
    http_secret: secret(16)
      .optional()
      .describe('With http: key of the signature (Standard Webhooks, HMAC-SHA-256).'),
    twilio_account_sid: text('ACxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')
      .optional()
      .describe('With twilio: the account.'),
    twilio_auth_token: secret().optional().describe('With twilio: its token.'),
    twilio_from: text('+15005550006')
      .optional()
      .describe(
        'With twilio: the sender, a number in E.164 format or a messaging service (MG...).',
      ),
    twilio_url: url(['https:'], 'an https URL', 'https://api.twilio.com')
      .default('https://api.twilio.com')
      .describe('With twilio: origin of an API of this shape.'),
  },
  {
    about: 'Outgoing text messages.',
    rules: [
      {
        keys: ['http_url', 'provider'],
        holds: (phone) => phone.provider !== 'http' || phone.http_url !== undefined,
        rule: 'be set when phone.provider is http',
        fix: 'set phone.http_url',
      },
      {
        keys: ['http_secret', 'provider', 'enabled'],
        holds: (phone) =>
          !phone.enabled || phone.provider !== 'http' || phone.http_secret !== undefined,
        rule: 'be set when phone.provider is http and phone.enabled is true',
        fix: 'set SVC_PHONE__HTTP_SECRET',
      },
      ...TWILIO_KEYS.map((key) => ({
        keys: [key, 'provider'] as [string, string],
        holds: (phone: TwilioSettings) => phone.provider !== 'twilio' || phone[key] !== undefined,
        rule: 'be set when phone.provider is twilio',
        fix: `set phone.${key}`,
      })),
    ],
  },
)

export const smsSettings = section(
  'sms',
  {
    enabled: flag(false).describe(
      'Users may sign in with a code by text message to their proved number. Needs phone.enabled.',
    ),
    ttl_secs: seconds(300, 3_600).describe('How long a code can be used.'),
    max_attempts: count(5, 1, 20).describe('Wrong attempts after which a code becomes invalid.'),
    allowed_prefixes: list(
      z
        .string()
        .regex(/^\+[1-9][0-9]{0,14}$/)
        .register(notes, { words: 'a prefix such as +49' }),
    )
      .default([])
      .describe('Beginnings of the numbers that messages may go to. Empty: all countries.'),
    requests_per_number_max: count(5).describe(
      'Codes that may be requested for one number per window, over all tenants.',
    ),
    requests_per_address_max: count(20).describe('The same per network address and window.'),
    requests_window_secs: seconds(900, DAY_SECS).describe('That window.'),
    per_number_gap_secs: count(30, 0, 3_600).describe('Seconds between two codes for one number.'),
    per_number_per_day_max: count(10).describe('Messages to one number per day, over all tenants.'),
    per_tenant_per_day_max: count(1_000).describe('Messages of one tenant per day.'),
    per_sandbox_per_day_max: count(20).describe('Messages of one sandbox tenant per day.'),
  },
  { about: 'Codes by text message. Needs [phone].' },
)

export type PhoneSettings = SettingsOf<typeof phoneSettings>
export type SmsSettings = SettingsOf<typeof smsSettings>

/** Whether anything of the phone is offered. */
export const hasPhone = (phone: Pick<PhoneSettings, 'enabled' | 'provider'>): boolean =>
  phone.enabled && phone.provider !== 'none'
