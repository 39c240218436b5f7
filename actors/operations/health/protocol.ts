/**
 * Health probes. The response has a status and no details. docs/reference/operations.md, Health.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type HealthProtocol = {
  live: Ask<null, Healthy>
  startup: Ask<null, Healthy | Starting>
  ready: Ask<null, Healthy | NotReady>
}

export type Healthy = { readonly tag: 'ok' }
export type Starting = { readonly tag: 'starting' }
export type NotReady = { readonly tag: 'unavailable' }

export const health = address<HealthProtocol>('health', ['live', 'startup', 'ready'])
