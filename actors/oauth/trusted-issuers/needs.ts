/** What the handlers of trusted issuers need. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import type { RemoteDocuments } from '../../platform/outbound-http/remote-documents.js'
import type { AdmissionNeeds } from './admission.js'
import type { TrustedIssuersProtocol } from './protocol.js'

export type TrustedIssuersNeeds = Omit<AdmissionNeeds, 'known' | 'keys' | 'mayLookAgain'> & {
  readonly random: Random
  readonly documents: Pick<RemoteDocuments, 'get'>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly isOwnAddress: (uri: string) => boolean
  /** The fault of a URL that would be fetched. Null if it may be. */
  readonly urlFaultOf: (url: string) => string | undefined
}
export type TrustedIssuerTools = TrustedIssuersNeeds &
  AdmissionNeeds & {
    /** True once a minute for each issuer and step: a job may repeat a refused token every second. */
    readonly mayRecord: (key: string) => boolean
  }

export type TrustedIssuerHandler<K extends keyof TrustedIssuersProtocol> = Handler<
  TrustedIssuerTools,
  TrustedIssuersProtocol,
  K
>
