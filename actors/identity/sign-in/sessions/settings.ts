/** [session_cookie]: lifetimes of browser sessions. */
import { flag, seconds } from '../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../runtime/kernel/config/section.js'

const MONTH_SECS = 30 * 86_400

export const sessionCookieSettings = section(
  'session_cookie',
  {
    enabled: flag(false).describe(
      'Keep users signed in when the browser is closed; otherwise the cookie ends with it.',
    ),
    idle_secs: seconds(3_600, MONTH_SECS).describe('A session ends after this time without use.'),
    absolute_secs: seconds(43_200, MONTH_SECS).describe(
      'A session ends after this time in any case.',
    ),
  },
  {
    about: 'Browser sessions of users. A tenant may set its own lifetimes.',
    rules: [
      {
        keys: ['idle_secs', 'absolute_secs'],
        holds: ({ idle_secs, absolute_secs }) => idle_secs <= absolute_secs,
        rule: 'be at most absolute_secs',
        fix: 'lower session_cookie.idle_secs or raise session_cookie.absolute_secs',
      },
    ],
  },
)

export type SessionCookieSettings = SettingsOf<typeof sessionCookieSettings>
