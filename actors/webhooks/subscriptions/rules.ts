/** What a subscription may say. decisions.md section 9: url rules, event_types filter, secrets. */
import type { Random } from '../../../runtime/kernel/random.js'
import type { EventType } from '../../domain/events.js'
import { EVENT_FILTERS_MAX, isEventFilter } from '../../domain/event-filters.js'
import { SECRET_BYTES_MAX, SECRET_BYTES_MIN } from '../delivery/signer.js'
import { judgeTarget, type TargetRules, URL_FAULTS } from '../../platform/outbound-http/targets.js'
import type { WebhookDraft, WebhookInvalid } from './protocol.js'

export const URL_CHARS_MAX = 2048
const GENERATED_BYTES = 32

/** Null when the draft is fine. */
export function draftFault(
  draft: WebhookDraft,
  rules: TargetRules,
  offered: readonly EventType[],
): WebhookInvalid | null {
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
      'Neither the name of an event of this deployment, nor a prefix of names with ".*", nor "*".',
    )
  }
  return null
}

/** Null when the secret may be used. */
export function secretFault(secret: string): WebhookInvalid | null {
  const bytes = Buffer.from(secret, 'utf8')
  if (bytes.length < SECRET_BYTES_MIN || bytes.length > SECRET_BYTES_MAX) {
    return invalid('/secret', `${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} UTF-8 bytes.`)
  }
  // A lone surrogate has no UTF-8: the two sides would disagree about the key.
  if (bytes.toString('utf8') !== secret) return invalid('/secret', 'Not well-formed text.')
  return null
}

/** A fresh secret, in the form that Standard Webhooks libraries take as it is. */
export function newWebhookSecret(random: Random): string {
  return `whsec_${Buffer.from(random.bytes(GENERATED_BYTES)).toString('base64')}`
}

function invalid(pointer: string, detail: string): WebhookInvalid {
  return { tag: 'invalid', pointer, detail }
}
