/**
 * Validates subscriptions: URL, event type filters and secrets (docs/reference/webhooks.md,
 * Subscriptions).
 */
import type { Random } from '../../../runtime/kernel/random.js'
import type { EventType } from '../../domain/events.js'
import { EVENT_FILTERS_MAX, isEventFilter } from '../../domain/webhooks/event-filters.js'
import { SECRET_BYTES_MAX, SECRET_BYTES_MIN } from '../../domain/webhooks/signature.js'
import { judgeTarget, type TargetRules, URL_FAULTS } from '../../platform/outbound-http/targets.js'
import type { WebhookDraft, WebhookInvalid } from './protocol.js'
import { invalid } from '../../domain/entities/messages.js'

const URL_CHARS_MAX = 2048
const GENERATED_BYTES = 32

/** @returns undefined when the draft is valid. */
export function draftFault(
  draft: WebhookDraft,
  rules: TargetRules,
  offered: readonly EventType[],
): WebhookInvalid | undefined {
  if (draft.url.length > URL_CHARS_MAX) {
    return invalid('/url', `At most ${URL_CHARS_MAX} characters.`)
  }
  const target = judgeTarget(draft.url, rules)
  if (target.tag === 'refused') return invalid('/url', URL_FAULTS[target.fault])
  const { eventTypes } = draft
  if (eventTypes.length === 0 || eventTypes.length > EVENT_FILTERS_MAX) {
    return invalid('/event_types', `1 to ${EVENT_FILTERS_MAX} entries.`)
  }
  const unknown = eventTypes.findIndex((filter) => !isEventFilter(filter, offered))
  if (unknown >= 0) {
    return invalid(
      `/event_types/${unknown}`,
      'Must be an event type of this deployment, a prefix of event types followed by ".*", or "*".',
    )
  }
  return undefined
}

/** @returns undefined when the secret is valid. */
export function secretFault(secret: string): WebhookInvalid | undefined {
  const bytes = Buffer.from(secret, 'utf8')
  if (bytes.length < SECRET_BYTES_MIN || bytes.length > SECRET_BYTES_MAX) {
    return invalid('/secret', `${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} UTF-8 bytes.`)
  }
  // A lone surrogate has no UTF-8 form, so both sides could derive different keys.
  if (bytes.toString('utf8') !== secret) return invalid('/secret', 'Must be well-formed Unicode.')
  return undefined
}

/** Generates a secret in the form that Standard Webhooks libraries expect. */
export function newWebhookSecret(random: Random): string {
  return `whsec_${Buffer.from(random.bytes(GENERATED_BYTES)).toString('base64')}`
}
