/** The dependencies of the vault. */
import type { FaultOf } from '../../platform/outbound-http/targets.js'
import type { Handler, ActorRef } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { SshCertificatesProtocol } from '../ssh-certificates/protocol.js'
import type { VaultProtocol } from './protocol.js'

export type VaultNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly sshCertificates: ActorRef<SshCertificatesProtocol>
  readonly clock: Clock
  readonly random: Random
  readonly urlFaultOf: FaultOf
  /** The egress proxy of this process forgets what it knows of the tenant. Other processes learn of changes by NOTIFY. */
  readonly changed: (tenantId: string) => Promise<void>
  readonly settings: {
    /** 0 for no limit. */
    readonly max_credentials_per_tenant: number
  }
}

export type VaultHandler<K extends keyof VaultProtocol> = Handler<VaultNeeds, VaultProtocol, K>
