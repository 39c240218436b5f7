// A single-page application without a framework: authorization code flow with PKCE (RFC 7636), tokens in memory.
const { issuer, clientId } = await (await fetch('/config.json')).json()
const redirectUri = `${location.origin}/callback`
const status = document.getElementById('status')
const button = document.getElementById('sign-in')

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
const randomText = () => base64url(crypto.getRandomValues(new Uint8Array(32)))

const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
if (metadata.issuer !== issuer) throw new Error('the metadata is of another issuer')

async function signIn() {
  const verifier = randomText()
  const state = randomText()
  // Only this tab can finish the sign-in that it began.
  sessionStorage.setItem('sign-in', JSON.stringify({ verifier, state }))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const url = new URL(metadata.authorization_endpoint)
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid profile email',
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
  })
  location.assign(url)
}

async function finish(parameters) {
  const begun = JSON.parse(sessionStorage.getItem('sign-in') ?? '{}')
  sessionStorage.removeItem('sign-in')
  // The code leaves the address bar and the history.
  history.replaceState(null, '', '/')
  // `iss` names the issuer that answered (RFC 9207).
  if (parameters.get('state') !== begun.state || parameters.get('iss') !== issuer)
    throw new Error('The answer belongs to another sign-in.')
  if (parameters.has('error')) throw new Error(parameters.get('error'))
  const answer = await fetch(metadata.token_endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code: parameters.get('code'),
      code_verifier: begun.verifier,
    }),
  })
  const tokens = await answer.json()
  if (!answer.ok) throw new Error(tokens.error)
  const userinfo = await fetch(metadata.userinfo_endpoint, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  })
  return userinfo.json()
}

button.addEventListener('click', signIn)
if (location.pathname === '/callback') {
  try {
    const person = await finish(new URLSearchParams(location.search))
    status.textContent = `Signed in as ${person.email}`
    button.hidden = true
  } catch (error) {
    status.textContent = error.message
  }
} else status.textContent = 'Signed out'
