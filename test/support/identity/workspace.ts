/** A workspace, bootstrapped as an agent would. */
import { type IdentityHouse, started } from './identity.js'

export type WorkspaceWishes = {
  readonly organizationName?: string
  readonly redirectUris?: readonly string[]
  readonly issueOperatorInvite?: boolean
  readonly framework?: string
}

export async function workspace(resources: IdentityHouse, wishes: WorkspaceWishes = {}) {
  const { key, challengeId, nonce } = await started(resources, 'workspace')
  const outcome = await resources.workspaces.ask('complete', {
    challengeId,
    nonce,
    organizationName: 'Acme Robotics',
    redirectUris: ['https://app.example/callback'],
    issueOperatorInvite: false,
    framework: 'generic',
    ...wishes,
  })
  if (outcome.tag !== 'provisioned') throw new Error(`complete: ${outcome.tag}`)
  return { ...outcome, key, challengeId, nonce }
}
