/** [webhooks]: signing and sending of events. decisions.md sections 9, 15 and 19. */
import { z } from 'zod'
import {
  count,
  flag,
  list,
  path,
  seconds,
  timerSeconds,
} from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const YEAR_SECS = 31_536_000

export const webhooksSettings = section(
  'webhooks',
  {
    max_age_secs: seconds(300).describe('Age of a signature at which a receiver should refuse it.'),
    timeout_secs: timerSeconds(15).describe('How long one attempt may take.'),
    retry_schedule_secs: list(z.int().min(0).max(YEAR_SECS))
      .min(1)
      .max(100)
      .default([0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400])
      .describe('Wait before each attempt; its length is the number of attempts.'),
    max_subscriptions_per_tenant: count(50, 1, 10_000).describe('Subscriptions of one tenant.'),
    lanes_per_tenant_max: count(32, 1, 512).describe(
      'Receivers of one tenant that one process sends to side by side.',
    ),
    delivery_retention_days: count(30, 1, 3_650).describe('How long deliveries are kept.'),
    allow_private_networks: flag(false).describe(
      'Loopback and private addresses; not in production.',
    ),
    ca_pem_path: path('test-ca.pem')
      .optional()
      .describe('Extra CA for receivers; not in production.'),
  },
  { about: 'Signed deliveries of events.' },
)

export type WebhooksSettings = SettingsOf<typeof webhooksSettings>
