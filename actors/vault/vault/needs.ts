/** The dependencies of the vault. */
import type { FaultOf } from '../../platform/outbound-http/targets.js'
import type { Handler, ActorRef } from '../../../runtime/kernel/actor.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { SshCertificatesProtocol } from '../ssh-certificates/protocol.js'
import type { VaultProtocol } from './protocol.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

export type VaultNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly sshCertificates: ActorRef<SshCertificatesProtocol>
  readonly urlFaultOf: FaultOf
  /** The egress proxy of this process forgets what it knows of the tenant. Other processes learn of changes by NOTIFY. */
  readonly changed: (tenantId: string) => Promise<void>
  readonly settings: {
    /** 0 for no limit. */
    readonly max_credentials_per_tenant: number
  }
}

export type VaultHandler<K extends keyof VaultProtocol> = Handler<VaultNeeds, VaultProtocol, K>
