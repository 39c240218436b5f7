/**
 * Health probes. The response has a status and no details. docs/reference/operations.md, Health.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type HealthProtocol = {
  live: Ask<null, Healthy>
  startup: Ask<null, Healthy | Starting>
  ready: Ask<null, Healthy | NotReady>
  /** Returns the request as it arrived, to the holder of a ticket of `svc doctor`. */
  describeRequest: Ask<DescribeRequest, RequestDescribed | NotAdmitted>
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

export const health = address<HealthProtocol>('health', ['live', 'startup', 'ready'])
