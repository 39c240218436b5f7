/** [logout]: logout tokens for applications (docs/guides/identity/sign-out.md). */
import { z } from 'zod'
import { list } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const HOUR_SECS = 3_600

export const logoutSettings = section(
  'logout',
  {
    retry_schedule_secs: list(z.int().min(0).max(HOUR_SECS))
      .min(1)
      .max(20)
      .default([0, 5, 30, 120, 600])
      .describe('Wait before each attempt. The length of the list is the number of attempts.'),
  },
  { about: 'Tells applications that a session has ended.' },
)

export type LogoutSettings = SettingsOf<typeof logoutSettings>
