/**
 * The vault: third-party credentials with their grants and leases. Secrets are sealed before they are
 * stored and unsealed where they are used; this actor keeps none in memory.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { sshCertificates } from '../ssh-certificates/protocol.js'
import { revokeVaultCredential, updateVaultCredential } from './changes.js'
import {
  createVaultCredential,
  readVaultCredentialSecret,
  rotateVaultCredential,
} from './credentials.js'
import {
  createVaultGrant,
  createVaultLease,
  listVaultGrants,
  listVaultLeases,
  revokeVaultGrant,
  revokeVaultLease,
} from './grants.js'
import type { VaultNeeds } from './needs.js'
import { type VaultProtocol, vault } from './protocol.js'
import { getVaultCredential, listVaultCredentials } from './read.js'

export const vaultActor = defineActor<VaultProtocol, VaultNeeds>({
  address: vault,
  asks: { sshCertificates },
  mailbox: { capacity: 1024, inflightMax: 128 },
  supervision: { onFailure: 'resume' },
  handlers: {
    listVaultCredentials,
    createVaultCredential,
    getVaultCredential,
    updateVaultCredential,
    rotateVaultCredential,
    revokeVaultCredential,
    readVaultCredentialSecret,
    listVaultGrants,
    createVaultGrant,
    revokeVaultGrant,
    listVaultLeases,
    createVaultLease,
    revokeVaultLease,
  },
})
