/** [webhooks]: signing and delivery of events (docs/reference/webhooks.md). */
import { z } from 'zod'
import {
  count,
  flag,
  list,
  readFilePath,
  seconds,
  timerSeconds,
} from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const YEAR_SECS = 31_536_000

export const webhooksSettings = section(
  'webhooks',
  {
    max_age_secs: seconds(300).describe(
      'Maximum age of a signature. Receivers should refuse older ones.',
    ),
    timeout_secs: timerSeconds(15).describe('Timeout of one attempt.'),
    retry_schedule_secs: list(z.int().min(0).max(YEAR_SECS))
      .min(1)
      .max(100)
      .default([0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400])
      .describe('Wait before each attempt. The length of the list is the number of attempts.'),
    max_subscriptions_per_tenant: count(50, 1, 10_000).describe(
      'Maximum number of subscriptions per tenant.',
    ),
    lanes_per_tenant_max: count(32, 1, 512).describe(
      'Receivers of one tenant that one process serves concurrently.',
    ),
    delivery_retention_days: count(30, 1, 3_650).describe('How long deliveries are stored.'),
    allow_private_networks: flag(false).describe(
      'Allow loopback and private addresses. Not in production.',
    ),
    ca_pem_path: readFilePath('test-ca.pem')
      .optional()
      .describe('Additional CA for receivers. Not in production.'),
  },
  { about: 'Signed deliveries of events.' },
)

export type WebhooksSettings = SettingsOf<typeof webhooksSettings>
