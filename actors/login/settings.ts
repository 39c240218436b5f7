/** [two_factor]: whether everybody needs a second factor. decisions.md 15. */
import { flag } from '../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../runtime/kernel/config/section.js'

export const twoFactorSettings = section(
  'two_factor',
  {
    enabled: flag(false).describe(
      'Every sign-in of a person needs a second factor; otherwise only where it is asked for.',
    ),
  },
  { about: 'Second factors.' },
)

export type TwoFactorSettings = SettingsOf<typeof twoFactorSettings>
