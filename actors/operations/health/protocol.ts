/**
 * Health probes, whose response has a status and no details, and what runs in the process, for operators of the
 * deployment. docs/reference/operations.md, Health.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type HealthProtocol = {
  healthLive: Ask<null, Healthy>
  healthStartup: Ask<null, Healthy | Starting>
  healthReady: Ask<null, Healthy | NotReady>
  /** Returns the request as it arrived, to the holder of a ticket of `svc doctor`. */
  healthRequest: Ask<DescribeRequest, RequestDescribed | NotAdmitted>
  listDeploymentPlanes: Ask<
    null,
    { readonly tag: 'planes'; readonly planes: readonly PlaneReport[] }
  >
  /** The actors of this process with their mailboxes. */
  listDeploymentActors: Ask<
    null,
    { readonly tag: 'actors'; readonly actors: readonly ActorReport[] }
  >
}

export type PlaneReport = {
  readonly name: string
  /** This process serves the plane. */
  readonly here: boolean
  /** How many actors run in the plane. */
  readonly actors: number
}

export type ActorReport = {
  readonly name: string
  /** `inline`, or `pool` or `thread` with its name. */
  readonly place: string
  readonly planes: readonly string[]
  readonly ready: boolean
  /** Messages in the mailbox. */
  readonly waiting: number
  /** Messages that have begun. */
  readonly running: number
  /** Most messages that may wait. */
  readonly capacity: number
  /** Most messages that run concurrently. */
  readonly runningMax: number
  /** Counts since the start of the process. */
  readonly accepted: number
  readonly completed: number
  /** Messages without an outcome: refused, late, cancelled or failed. */
  readonly failed: number
  readonly restarts: number
}

export type Healthy = { readonly tag: 'ok' }
export type Starting = { readonly tag: 'starting' }
export type RequestSeen = {
  readonly host: string
  /** Scheme and host that the service derives from the request. */
  readonly origin: string
  readonly clientAddress: string
  readonly forwardedFor: string | null
  readonly forwardedProto: string | null
}
export type DescribeRequest = {
  /** The value of the header `svc-doctor`. `svc doctor` writes it into the coordination backend. */
  readonly ticket: string | null
  readonly seen: RequestSeen
}
export type RequestDescribed = { readonly tag: 'described'; readonly seen: RequestSeen }
export type NotAdmitted = { readonly tag: 'not_admitted' }
export type NotReady = { readonly tag: 'unavailable' }

/** The key of a ticket in the coordination backend, which stores a hash of it. */
export function doctorKey(ticket: string): string {
  return `doctor:${ticket}`
}

export const health = address<HealthProtocol>('health', {
  idempotent: [
    'healthLive',
    'healthStartup',
    'healthReady',
    'listDeploymentPlanes',
    'listDeploymentActors',
  ],
})
