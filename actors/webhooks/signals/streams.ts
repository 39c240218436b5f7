/** Streams of a receiver: creating, reading, changing, deleting and verifying them. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { insertSignalEvents } from '../../../storage/webhooks/signal-events.js'
import {
  deleteSignalStreamRow,
  findSignalStream,
  insertSignalStream,
  listStreamsOfReceiver,
  listTenantStreams,
  setSignalStreamStatus,
  streamAuthorizationContext,
  type StreamDelivery,
  type SignalStreamRow,
  type StreamKey,
  takeVerification,
  updateSignalStreamRow,
} from '../../../storage/webhooks/signal-streams.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import { invalid, type MemberInvalid } from '../../domain/entities/messages.js'
import { isUuid } from '../../domain/ids.js'
import {
  DELIVERY_METHODS,
  EVENTS_SUPPORTED,
  POLL,
  PUSH,
  VERIFICATION,
} from '../../domain/webhooks/signals.js'
import { judgeTarget, URL_FAULTS } from '../../platform/outbound-http/targets.js'
import { createOnce } from '../../platform/creation.js'
import { inTenant } from '../../platform/in-tenant.js'
import { listOf } from '../../platform/paging.js'
import { recordAudit } from '../../platform/record-audit.js'
import type { SignalsHandler, SignalsNeeds } from './needs.js'
import type {
  ChangeStream,
  OneStream,
  StatusFound,
  StreamDraft,
  StreamFound,
  StreamRecord,
  StreamUnknown,
} from './protocol.js'

export const UNKNOWN: StreamUnknown = { tag: 'unknown' }

/** Undefined: there is no stream with such an id. */
export function keyOf({ caller: { principal }, streamId }: OneStream): StreamKey | undefined {
  const { tenantId, clientId } = principal
  return isUuid(streamId) ? { tenantId, id: streamId, receiver: clientId } : undefined
}

/** Runs `work` on the stream that a message names, in a transaction of its tenant. */
export async function withStream<T>(
  { database }: Pick<SignalsNeeds, 'database'>,
  message: OneStream,
  context: MessageContext,
  work: (tx: Transaction, key: StreamKey) => Promise<T | StreamUnknown>,
): Promise<T | StreamUnknown> {
  const key = keyOf(message)
  return key === undefined
    ? UNKNOWN
    : inTenant(database, key.tenantId, context, (tx) => work(tx, key))
}

/** The events of a stream: those that the receiver asked for, else all. */
export const deliveredOf = (requested: readonly string[] | null): readonly string[] =>
  EVENTS_SUPPORTED.filter((type) => requested === null || requested.includes(type))

function recordOf({ issuer, settings }: SignalsNeeds, row: SignalStreamRow): StreamRecord {
  return {
    streamId: row.id,
    iss: issuer,
    aud: row.receiver,
    delivery:
      row.endpointUrl === null
        ? { method: POLL, endpointUrl: pollUrl(issuer, row.id) }
        : { method: PUSH, endpointUrl: row.endpointUrl },
    eventsSupported: EVENTS_SUPPORTED,
    eventsRequested: row.eventsRequested,
    eventsDelivered: deliveredOf(row.eventsRequested),
    minVerificationInterval: settings.min_verification_interval_secs,
    description: row.description,
  }
}

const pollUrl = (issuer: string, id: string) => `${issuer}/ssf/poll/${id}`

const HEADER_VALUE = /^[!-~](?:[ -~]*[!-~])?$/

/** @param id the stream, if it exists. */
function deliveryFault(
  { issuer, urlRules }: SignalsNeeds,
  { delivery }: StreamDraft,
  id: string | null,
): MemberInvalid | undefined {
  if (delivery === undefined) return undefined
  const { method, endpointUrl, authorizationHeader } = delivery
  if (!DELIVERY_METHODS.includes(method))
    return invalid('/delivery/method', `Must be ${DELIVERY_METHODS.join(' or ')}.`)
  if (method === PUSH) {
    if (endpointUrl === undefined) return invalid('/delivery/endpoint_url', 'A push needs a URL.')
    const target = judgeTarget(endpointUrl, urlRules)
    if (target.tag === 'refused') return invalid('/delivery/endpoint_url', URL_FAULTS[target.fault])
    return authorizationHeader === undefined || HEADER_VALUE.test(authorizationHeader)
      ? undefined
      : invalid('/delivery/authorization_header', 'Must be visible ASCII characters and spaces.')
  }
  if (endpointUrl !== undefined && (id === null || endpointUrl !== pollUrl(issuer, id)))
    return invalid('/delivery/endpoint_url', 'The service chooses the URL of a poll.')
  return authorizationHeader === undefined
    ? undefined
    : invalid('/delivery/authorization_header', 'Only a push has one.')
}

/** A poll has neither member. */
async function sealedDelivery(
  { sealer }: SignalsNeeds,
  tenantId: string,
  id: string,
  delivery: StreamDraft['delivery'],
): Promise<StreamDelivery> {
  if (delivery?.method !== PUSH) return { endpointUrl: null, authorizationSealed: null }
  const { endpointUrl = null, authorizationHeader: header } = delivery
  const seal = (text: string) =>
    sealer.seal(tenantId, streamAuthorizationContext(id), Buffer.from(text, 'latin1'))
  return { endpointUrl, authorizationSealed: header === undefined ? null : await seal(header) }
}

/** A member that the service states, and that the body repeats with another value. */
function statedFault(
  record: StreamRecord,
  stated: Readonly<Record<string, unknown>>,
): MemberInvalid | undefined {
  const own: Readonly<Record<string, unknown>> = {
    iss: record.iss,
    aud: record.aud,
    events_supported: record.eventsSupported,
    events_delivered: record.eventsDelivered,
    min_verification_interval: record.minVerificationInterval,
  }
  const sorted = (value: unknown) => JSON.stringify([value].flat().map(String).toSorted())
  const other = Object.keys(own).find(
    (name) => stated[name] !== undefined && sorted(stated[name]) !== sorted(own[name]),
  )
  return other === undefined ? undefined : invalid(`/${other}`, 'The service sets this member.')
}

function audit(
  tx: Transaction,
  needs: SignalsNeeds,
  caller: Caller,
  context: MessageContext,
  { did, id, data }: { did: 'created' | 'updated' | 'deleted'; id: string; data: object },
): void {
  const resource = { type: 'signal_stream', id }
  recordAudit(tx, needs, caller, context, {
    type: `signal_stream.${did}`,
    resource,
    data: { ...data },
  })
}

export const createSignalStream: SignalsHandler<'createSignalStream'> = async (
  needs,
  { caller, draft, idempotency },
  context,
) => {
  const { tenantId, clientId, subjectType, apiKey } = caller.principal
  if (apiKey === true) return { tag: 'no_receiver' }
  const fault = deliveryFault(needs, draft, null)
  if (fault !== undefined) return fault
  const id = needs.random.uuid()
  const most = needs.settings.streams_per_receiver_max
  const stream = {
    tenantId,
    id,
    receiver: clientId,
    applicationId: subjectType === 'service' ? clientId : null,
    eventsRequested: draft.eventsRequested ?? null,
    description: draft.description ?? null,
    delivery: await sealedDelivery(needs, tenantId, id, draft.delivery),
    now: needs.clock.now(),
  }
  return createOnce(needs, { caller, idempotency }, context, async (tx) => {
    const row = await insertSignalStream(tx, stream, most)
    if (row === undefined) return { tag: 'too_many' as const, most }
    const record = recordOf(needs, row)
    const data = { events: record.eventsDelivered }
    audit(tx, needs, caller, context, { did: 'created', id, data })
    return { tag: 'created' as const, stream: record, replayed: false }
  })
}

export const readSignalStreams: SignalsHandler<'readSignalStreams'> = (
  needs,
  { caller, streamId },
  context,
) => {
  const { tenantId, clientId } = caller.principal
  return inTenant(needs.database, tenantId, context, async (tx) => {
    if (streamId === null) {
      const rows = await listStreamsOfReceiver(tx, tenantId, clientId)
      return { tag: 'listed', streams: rows.map((row) => recordOf(needs, row)) }
    }
    const key = keyOf({ caller, streamId })
    const row = key && (await findSignalStream(tx, key))
    return row === undefined ? UNKNOWN : { tag: 'found', stream: recordOf(needs, row) }
  })
}

export const listSignalStreams: SignalsHandler<'listSignalStreams'> = (
  needs,
  { caller, ...page },
  context,
) =>
  listOf(needs, caller.principal.tenantId, page, context, {
    list: listTenantStreams,
    show: (row) => ({
      ...recordOf(needs, row),
      receiverType: row.applicationId === null ? 'agent' : 'application',
      status: row.status,
      reason: row.reason,
      createdAt: row.createdAt,
    }),
  })

async function changed(
  needs: SignalsNeeds,
  message: ChangeStream,
  context: MessageContext,
  isWhole: boolean,
): Promise<StreamFound | StreamUnknown | MemberInvalid> {
  const { caller, draft, stated } = message
  const key = keyOf(message)
  if (key === undefined) return UNKNOWN
  const delivery =
    isWhole || draft.delivery !== undefined
      ? await sealedDelivery(needs, key.tenantId, key.id, draft.delivery)
      : null
  return inTenant(needs.database, key.tenantId, context, async (tx) => {
    const before = await findSignalStream(tx, key)
    if (before === undefined) return UNKNOWN
    const fault =
      deliveryFault(needs, draft, key.id) ?? statedFault(recordOf(needs, before), stated)
    if (fault !== undefined) return fault
    const now = needs.clock.now()
    const kept = isWhole ? null : before
    const row = await updateSignalStreamRow(tx, {
      ...key,
      eventsRequested: draft.eventsRequested ?? kept?.eventsRequested ?? null,
      description: draft.description ?? kept?.description ?? null,
      delivery,
      now,
    })
    if (row === undefined) return UNKNOWN
    const stream = recordOf(needs, row)
    const data = { events: stream.eventsDelivered }
    audit(tx, needs, caller, context, { did: 'updated', id: key.id, data })
    return { tag: 'found', stream }
  })
}

export const updateSignalStream: SignalsHandler<'updateSignalStream'> = (needs, message, context) =>
  changed(needs, message, context, false)

export const replaceSignalStream: SignalsHandler<'replaceSignalStream'> = (
  needs,
  message,
  context,
) => changed(needs, message, context, true)

export const deleteSignalStream: SignalsHandler<'deleteSignalStream'> = (needs, message, context) =>
  withStream(needs, message, context, async (tx, key) => {
    if (!(await deleteSignalStreamRow(tx, key))) return UNKNOWN
    audit(tx, needs, message.caller, context, { did: 'deleted', id: key.id, data: {} })
    return { tag: 'removed' }
  })

const statusOf = ({ id, status, reason }: SignalStreamRow): StatusFound => ({
  tag: 'status',
  streamId: id,
  status,
  reason,
})

export const readSignalStreamStatus: SignalsHandler<'readSignalStreamStatus'> = (
  needs,
  message,
  context,
) =>
  withStream(needs, message, context, async (tx, key) => {
    const row = await findSignalStream(tx, key)
    return row === undefined ? UNKNOWN : statusOf(row)
  })

export const updateSignalStreamStatus: SignalsHandler<'updateSignalStreamStatus'> = (
  needs,
  message,
  context,
) =>
  withStream(needs, message, context, async (tx, key) => {
    const { caller, status, reason } = message
    const change = { ...key, status, reason, now: needs.clock.now() }
    const row = await setSignalStreamStatus(tx, change)
    if (row === undefined) return UNKNOWN
    audit(tx, needs, caller, context, { did: 'updated', id: key.id, data: { status } })
    return statusOf(row)
  })

export const verifySignalStream: SignalsHandler<'verifySignalStream'> = (needs, message, context) =>
  withStream(needs, message, context, async (tx, key) => {
    const now = needs.clock.now()
    const intervalSecs = needs.settings.min_verification_interval_secs
    if (!(await takeVerification(tx, key, now, intervalSecs))) {
      const found = await findSignalStream(tx, key)
      return found === undefined ? UNKNOWN : { tag: 'too_often', retryAfterSecs: intervalSecs }
    }
    const { state } = message
    const { tenantId, id: streamId } = key
    const event = {
      tenantId,
      streamId,
      id: needs.random.uuid(),
      txn: null,
      type: VERIFICATION,
      subject: { format: 'opaque', id: streamId },
      event: state === null ? {} : { state },
      issuedAt: now,
      about: null,
    }
    await insertSignalEvents(tx, [event])
    return { tag: 'begun' }
  })
