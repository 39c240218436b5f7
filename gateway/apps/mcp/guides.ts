/**
 * Short guides for software agents. Each names the operations of its steps, so that a reader continues with
 * `get_operation`. A guide about an optional feature names the capability that it needs.
 */

type Guide = {
  readonly title: string
  /** The capability of the feature. Null if every deployment has the feature. */
  readonly capability: string | null
  /** Operation ids of the steps, in order. */
  readonly operations: readonly string[]
  readonly text: string
}

export const GUIDES = {
  agent_registration: {
    title: 'Register a software agent',
    capability: 'agents.pow_registration',
    operations: [
      'readWorkspaceBootstrap',
      'startWorkspaceBootstrap',
      'completeWorkspaceBootstrap',
      'startAgentRegistration',
      'completeAgentRegistration',
    ],
    text:
      '1. Create an ed25519 or es256 key. 2. Read the bootstrap metadata: issuer, tenant UUID and the fields of the ' +
      'ownership string. 3. Sign the ownership string, which is its fields joined by line feeds. 4. Start the ' +
      'registration with the key and the proof. A workspace bootstrap creates an organization, a sandbox tenant and ' +
      'an application. An agent registration creates the agent only, in a tenant that admits agents. 5. Solve the ' +
      'proof of work of the answer and wait for its minimum duration. 6. Complete the registration with the nonce. ' +
      'Keep the private key: it is the only credential of the agent.',
  },
  agent_login: {
    title: 'Log in as a software agent',
    capability: null,
    operations: ['challengeAgent', 'verifyAgent', 'issueToken'],
    text:
      '1. Request a challenge with the agent_id and the tenant_id. 2. Check the payload of the answer and sign it ' +
      'unchanged with the private key of the agent. 3. Send challenge_id and signature and get an access token. With ' +
      'a DPoP header the token is bound to the key of the proof. 4. When the token expires, use the refresh token ' +
      'with client_id = the agent_id, or log in again.',
  },
  device_delegation: {
    title: 'Act for a user by delegation',
    capability: 'agents.device_delegation',
    operations: ['startDelegation', 'pollDelegation', 'revokeDelegation'],
    text:
      '1. Log in as the agent. 2. Start a delegation with the scopes that you need. 3. Show the link and the user ' +
      'code to the user, who signs in and decides. 4. Poll with the device code at the given interval. Wait 5 ' +
      'seconds longer after slow_down. 5. The answer has an access token whose sub is the user and whose act claim ' +
      'is the agent. The user can revoke the delegation at any time.',
  },
  egress: {
    title: 'Call an API with a stored credential',
    capability: 'vault.egress',
    operations: ['listVaultCredentials', 'createVaultGrant', 'proxyRequest', 'proxyRequestBody'],
    text:
      '1. An owner stores the credential in the vault and grants it to the agent or the delegation. 2. List the ' +
      'credentials to find the id. 3. Send the call as one JSON document, or send its body as a stream with the ' +
      'rest of the call in headers. The service adds the secret, relays the call, and removes the secret from the ' +
      'response. The agent never sees the secret. The token needs scope vault:read.',
  },
  ssh: {
    title: 'Log in to servers with SSH certificates',
    capability: 'vault.ssh_ca',
    operations: ['createVaultCredential', 'signSshCertificate', 'getSshRevocationList'],
    text:
      '1. An owner creates a credential of type ssh_ca and installs its public key on the servers as ' +
      'TrustedUserCAKeys. Servers load the revocation list as RevokedKeys. 2. The agent requests a ' +
      'certificate for a host and its principals. 3. Log in with it: it is valid for minutes.',
  },
  webhooks: {
    title: 'Receive events by webhook',
    capability: 'webhooks',
    operations: [
      'createWebhook',
      'testWebhook',
      'listWebhookDeliveries',
      'recoverWebhookDeliveries',
    ],
    text:
      '1. Create a subscription with an https URL and event types. The secret is shown once. 2. Verify the signature ' +
      'of each delivery with the secret before you read the body: libraries for Standard Webhooks do this. ' +
      '3. Answer 2xx after the event is stored, and drop repeated delivery ids. Failed deliveries are retried. ' +
      'The tool list_event_types lists the event types.',
  },
  x402: {
    title: 'Pay with x402',
    capability: 'commerce.x402',
    operations: ['getX402Challenge', 'payByX402', 'getCheckoutX402Challenge', 'payCheckoutByX402'],
    text:
      '1. Request the price of a payment link or a checkout. The answer is 402 with the payment requirements. ' +
      '2. Sign a transfer authorization for the exact amount, token and network (x402 version 2, scheme exact). ' +
      '3. Repeat the request as POST with the payment in the header PAYMENT-SIGNATURE. 200 is settled, 402 refused. ' +
      'After 503 send the same payment again after Retry-After, never a new one.',
  },
  oauth_login: {
    title: 'Sign users in with OAuth and OpenID Connect',
    capability: 'oauth.authorization_code',
    operations: ['getOpenidConfiguration', 'authorize', 'issueToken', 'getUserinfo', 'endSession'],
    text:
      '1. Read the discovery document. 2. Send the browser to the authorization endpoint with client_id, ' +
      'redirect_uri, scope, state, nonce and a PKCE code_challenge (S256). 3. Check state and iss of the redirect. ' +
      '4. Exchange the code for tokens with the code_verifier. 5. Verify the ID token: signature, iss, aud, nonce ' +
      'and exp. 6. Refresh with the refresh token of the last answer. Use a certified client library.',
  },
} as const satisfies Readonly<Record<string, Guide>>

type GuideTopic = keyof typeof GUIDES
export const GUIDE_TOPICS = Object.keys(GUIDES) as readonly GuideTopic[]
