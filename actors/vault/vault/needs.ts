/** The dependencies of the vault. */
import type { FaultOf } from '../../platform/outbound-http/targets.js'
import type { Handler, ActorRef } from '../../../runtime/kernel/actor.js'
import type { SshCertificatesProtocol } from '../ssh-certificates/protocol.js'
import type { VaultProtocol } from './protocol.js'
import type { EndNeeds } from './connections/needs.js'

export type VaultNeeds = EndNeeds & {
  readonly sshCertificates: ActorRef<SshCertificatesProtocol>
  readonly urlFaultOf: FaultOf
  readonly settings: {
    /** 0 for no limit. */
    readonly max_credentials_per_tenant: number
  }
}

export type VaultHandler<K extends keyof VaultProtocol> = Handler<VaultNeeds, VaultProtocol, K>
