const { BASE, CLIENT_ID, CLIENT_SECRET } = process.env

async function json<T>(address: string, request: RequestInit): Promise<T> {
  const answer = await fetch(address, request)
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}

const basic = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64')
const form = { grant_type: 'client_credentials', scope: 'applications:read' }
const { access_token } = await json<{ access_token: string }>(`${BASE}/oauth/token`, {
  method: 'POST',
  headers: { authorization: `Basic ${basic}` },
  body: new URLSearchParams(form),
})
const applications = await json<{ name: string }[]>(`${BASE}/api/v1/applications`, {
  headers: { authorization: `Bearer ${access_token}` },
})
for (const { name } of applications) console.log(name)
