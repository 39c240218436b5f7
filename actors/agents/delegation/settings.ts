/** [device_authorization]: device flow and delegation. */
import { seconds } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const deviceAuthorizationSettings = section(
  'device_authorization',
  {
    ttl_secs: seconds(900, 3_600).describe('Lifetime of a device code.'),
    interval_secs: seconds(5, 60).describe('Minimum time between two polls.'),
    delegation_ttl_secs: seconds(604_800).describe('Lifetime of an approved delegation.'),
    approval_max_auth_age_secs: seconds(300).describe('How recent the approving sign-in must be.'),
  },
  {
    about: 'Device flow, and delegation that a person approves on another device.',
    rules: [
      {
        keys: ['interval_secs', 'ttl_secs'],
        holds: (device) => device.interval_secs <= device.ttl_secs,
        rule: 'be at most device_authorization.ttl_secs',
        fix: 'lower interval_secs or raise ttl_secs',
      },
    ],
  },
)

export type DeviceAuthorizationSettings = SettingsOf<typeof deviceAuthorizationSettings>
