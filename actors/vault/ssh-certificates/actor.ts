/**
 * Signs short-lived SSH certificates with certificate authorities of the vault, revokes them, and
 * publishes revocation lists. Signing runs in the pool (compute.ts).
 */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { signSshCertificate } from './certificates.js'
import {
  getSshRevocationList,
  getSshTrustFile,
  pollSshRevocationList,
  revokeSshCertificate,
  sshMemory,
} from './lists.js'
import type { SshCertificatesNeeds } from './needs.js'
import { type SshCertificatesProtocol, sshCertificates } from './protocol.js'

export const sshCertificatesActor = defineActor<SshCertificatesProtocol, SshCertificatesNeeds>({
  address: sshCertificates,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const memory = sshMemory()
    return boundHandlers<SshCertificatesProtocol, SshCertificatesNeeds>(
      {
        authority: ({ compute }, message, context) => compute.run('authority', message, context),
        signSshCertificate,
        revokeSshCertificate,
        getSshRevocationList,
        pollSshRevocationList: pollSshRevocationList(memory),
        getSshTrustFile: getSshTrustFile(memory),
      },
      needs,
    )
  },
})
