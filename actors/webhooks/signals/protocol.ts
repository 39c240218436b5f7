/** Messages about streams of security events (docs/guides/webhooks/shared-signals.md). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { MemberInvalid } from '../../domain/entities/messages.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../domain/idempotency.js'
import type { Listed, Page } from '../../domain/paging.js'
import type { StreamStatus } from '../../domain/webhooks/signals.js'

export type SignalsProtocol = {
  createSignalStream: Ask<
    CreateStream,
    StreamCreated | MemberInvalid | TooManyStreams | NoReceiver | IdempotencyRefused
  >
  /** One stream of the receiver, or all. */
  readSignalStreams: Ask<
    OfReceiver & { readonly streamId: string | null },
    StreamFound | StreamsListed | StreamUnknown
  >
  /** The streams of all receivers of the tenant, for its administrators. */
  listSignalStreams: Ask<OfReceiver & Page, Listed<TenantStreamRecord>>
  /** Changes the members of the draft. */
  updateSignalStream: Ask<ChangeStream, StreamFound | MemberInvalid | StreamUnknown>
  /** Members that the draft does not have are deleted. */
  replaceSignalStream: Ask<ChangeStream, StreamFound | MemberInvalid | StreamUnknown>
  deleteSignalStream: Ask<OneStream, { readonly tag: 'removed' } | StreamUnknown>
  readSignalStreamStatus: Ask<OneStream, StatusFound | StreamUnknown>
  updateSignalStreamStatus: Ask<ChangeStatus, StatusFound | StreamUnknown>
  addSignalSubject: Ask<ChangeSubject, SubjectChanged | MemberInvalid | StreamUnknown>
  removeSignalSubject: Ask<
    ChangeSubject,
    SubjectChanged | MemberInvalid | StreamUnknown | TooManySubjects
  >
  verifySignalStream: Ask<
    OneStream & { readonly state: string | null },
    { readonly tag: 'begun' } | StreamUnknown | TooOften
  >
  /** Acknowledges events, and returns the next ones. */
  pollSignalEvents: Ask<PollEvents, EventsPolled | StreamUnknown | KeysUnavailable | SigningBusy>
}

/** Events of one answer to a poll. */
export const EVENTS_MAX = 100

/** The caller is the receiver: a receiver knows its own streams only. */
export type OfReceiver = { readonly caller: Caller }
export type OneStream = OfReceiver & { readonly streamId: string }

export type DeliveryDraft = {
  readonly method: string
  readonly endpointUrl?: string | undefined
  readonly authorizationHeader?: string | undefined
}
/** What a receiver says of a stream. */
export type StreamDraft = {
  readonly delivery?: DeliveryDraft | undefined
  readonly eventsRequested?: readonly string[] | undefined
  readonly description?: string | undefined
}
/** What the service says of a stream. A receiver may repeat it. */
type StatedMembers = {
  readonly iss: string
  readonly aud: string
  readonly eventsSupported: readonly string[]
  readonly eventsDelivered: readonly string[]
  readonly minVerificationInterval: number
}
export type StreamRecord = StatedMembers & {
  readonly streamId: string
  readonly delivery: { readonly method: string; readonly endpointUrl: string }
  readonly eventsRequested: readonly string[] | null
  readonly description: string | null
}

export type TenantStreamRecord = StreamRecord & {
  readonly receiverType: 'agent' | 'application'
  readonly status: StreamStatus
  readonly reason: string | null
  readonly createdAt: Date
}

export type CreateStream = OfReceiver & {
  readonly draft: StreamDraft
  readonly idempotency: IdempotencyClaim | null
}
export type ChangeStream = OneStream & {
  readonly draft: StreamDraft
  /** The members that the body repeats, by their names in the API. */
  readonly stated: Readonly<Record<string, unknown>>
}
export type ChangeStatus = OneStream & {
  readonly status: StreamStatus
  readonly reason: string | null
}
export type ChangeSubject = OneStream & { readonly subject: Readonly<Record<string, unknown>> }
export type PollEvents = OneStream & {
  readonly most: number
  readonly acknowledged: readonly string[]
  /** Events that the receiver refuses, with its error code. */
  readonly refused: Readonly<Record<string, string>>
  readonly returnImmediately: boolean
}

export type StreamCreated = {
  readonly tag: 'created'
  readonly stream: StreamRecord
  readonly replayed: boolean
}
export type StreamFound = { readonly tag: 'found'; readonly stream: StreamRecord }
export type StreamsListed = { readonly tag: 'listed'; readonly streams: readonly StreamRecord[] }
/** The receiver has no such stream. */
export type StreamUnknown = { readonly tag: 'unknown' }
/** An API key stands for no application, so that no stream can be its own. */
type NoReceiver = { readonly tag: 'no_receiver' }
export type TooManyStreams = { readonly tag: 'too_many'; readonly most: number }
export type StatusFound = {
  readonly tag: 'status'
  readonly streamId: string
  readonly status: StreamStatus
  readonly reason: string | null
}
export type SubjectChanged = { readonly tag: 'changed' }
export type TooManySubjects = { readonly tag: 'too_many_subjects'; readonly most: number }
export type TooOften = { readonly tag: 'too_often'; readonly retryAfterSecs: number }
export type EventsPolled = {
  readonly tag: 'polled'
  /** Security event tokens by their `jti`. */
  readonly sets: Readonly<Record<string, string>>
  readonly moreAvailable: boolean
}
/** Too many events are being signed for the polls of the stream, or of the tenant. */
export type SigningBusy = { readonly tag: 'busy' }
export type KeysUnavailable = { readonly tag: 'keys_unavailable' }

export const signals = address<SignalsProtocol>('signals', {
  idempotent: ['listSignalStreams', 'readSignalStreams', 'readSignalStreamStatus'],
})
