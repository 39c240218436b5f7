/** A workspace, bootstrapped as an agent does. */
import { type IdentityFixture, started } from './identity.js'

export type WorkspaceWishes = {
  readonly organizationName?: string
  readonly redirectUris?: readonly string[]
  readonly issueOperatorInvite?: boolean
  readonly framework?: string
}

export async function workspace(fixture: IdentityFixture, wishes: WorkspaceWishes = {}) {
  const { key, challengeId, nonce } = await started(fixture, 'workspace')
  const outcome = await fixture.workspaces.completeWorkspaceBootstrap({
    challengeId,
    nonce,
    organizationName: 'Acme Robotics',
    redirectUris: ['https://app.example/callback'],
    issueOperatorInvite: false,
    framework: 'generic',
    network: null,
    ...wishes,
  })
  if (outcome.tag !== 'provisioned') throw new Error(`complete: ${outcome.tag}`)
  return { ...outcome, key, challengeId, nonce }
}
