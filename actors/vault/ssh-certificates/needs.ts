/** The dependencies of the SSH certificates, and the pool that signs them. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import type { Compute, PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { SshCertificatesMetrics } from './metrics.js'
import type { SshCertificatesProtocol } from './protocol.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

/** One signature takes about 0.2 ms, so a small batch keeps the queue of each thread short. */
const BATCH_MAX = 8

type SshCertificatesCompute = Compute<typeof import('./compute.js')>
export type SshCertificatesNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly compute: SshCertificatesCompute
  readonly metrics: SshCertificatesMetrics
  readonly settings: {
    readonly ssh_default_validity_secs: number
    readonly ssh_max_validity_secs: number
  }
}

/** Options of the pool behind `SshCertificatesNeeds.compute`. */
export function sshCertificatesPool(threadsMax: number): PoolOptions {
  return {
    name: 'sshca',
    module: new URL('./compute.js', import.meta.url),
    threadsMax,
    batchMax: BATCH_MAX,
    forgets: true,
  }
}

export type SshHandler<K extends keyof SshCertificatesProtocol> = Handler<
  SshCertificatesNeeds,
  SshCertificatesProtocol,
  K
>
