/** [shared_signals]: streams of security events (docs/guides/webhooks/shared-signals.md). */
import { z } from 'zod'
import { count, list, seconds } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const YEAR_SECS = 31_536_000

export const sharedSignalsSettings = section(
  'shared_signals',
  {
    streams_per_receiver_max: count(10, 1, 100).describe('Maximum number of streams per receiver.'),
    min_verification_interval_secs: seconds(10, 86_400).describe(
      'Shortest time between two verifications of a stream.',
    ),
    retry_schedule_secs: list(z.int().min(0).max(YEAR_SECS))
      .min(1)
      .max(100)
      .default([0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400])
      .describe('Wait before each push. The length of the list is the number of attempts.'),
    poll_wait_secs: count(20, 0, 30).describe(
      'How long a poll waits for an event. Keep it below server.request_timeout_secs.',
    ),
  },
  { about: 'Streams of security events (SSF, CAEP, RISC).' },
)

export type SharedSignalsSettings = SettingsOf<typeof sharedSignalsSettings>
