// The pages of the API: search, requests and tokens from the page. Without this script the pages show the same content.
const KEPT = 'svc-api-token'
const filter = document.getElementById('filter')
const token = document.getElementById('token')

if (filter !== null) {
  const operations = [...document.querySelectorAll('[data-words]')]
  const count = document.getElementById('count')
  document.getElementById('search').hidden = false
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean)
    let shown = 0
    for (const one of operations) {
      one.hidden = !words.every((word) => one.dataset.words.includes(word))
      if (!one.hidden) shown += 1
    }
    for (const section of document.querySelectorAll('section.tag')) {
      section.hidden = section.querySelector('[data-words]:not([hidden])') === null
    }
    count.textContent = words.length === 0 ? '' : `${shown} of ${operations.length} operations`
  })
}

if (token !== null) {
  document.getElementById('access').hidden = false
  token.value = sessionStorage.getItem(KEPT) ?? ''
  token.addEventListener('change', () => sessionStorage.setItem(KEPT, token.value))
  document.querySelector('form[data-token]').addEventListener('submit', getToken)
}

async function getToken(event) {
  event.preventDefault()
  const form = event.target
  const status = form.querySelector('[role=status]')
  const { client_id: id, client_secret: secret, scope } = Object.fromEntries(new FormData(form))
  const encoded = [id, secret].map((part) => new URLSearchParams({ part }).toString().slice(5))
  status.textContent = 'Sending'
  try {
    const answer = await fetch('/oauth/token', {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(encoded.join(':'))}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === '' ? {} : { scope }) }),
      credentials: 'omit',
    })
    const body = await answer.json()
    if (!answer.ok) throw new Error(body.error_description ?? body.error)
    token.value = body.access_token
    sessionStorage.setItem(KEPT, token.value)
    form.reset()
    status.textContent = `A token with ${body.scope}, for ${body.expires_in} s`
  } catch (error) {
    status.textContent = error.message
  }
}

// A link to an operation or a schema opens it.
function openTarget() {
  const id = decodeURIComponent(location.hash.slice(1))
  const target = id === '' ? null : document.getElementById(id)
  if (target?.tagName === 'DETAILS') target.open = true
  target?.scrollIntoView()
}
addEventListener('hashchange', openTarget)
openTarget()

for (const one of document.querySelectorAll('details[data-path]'))
  one.addEventListener('toggle', () => one.open && addForm(one))

// The form is added when an operation is first opened: most never are.
function addForm(one) {
  if (one.querySelector('form') !== null) return
  const { method, path } = one.dataset
  const form = document.createElement('form')
  form.className = 'try'
  const field = (name, label, value, tag = 'input') => {
    const input = document.createElement(tag)
    input.id = `${one.id}-${name}`
    input.name = name
    input.value = value
    input.spellcheck = false
    const words = document.createElement('label')
    words.htmlFor = input.id
    words.textContent = label
    form.append(words, input)
    return input
  }
  const address = field('address', 'Path and query', path)
  const example = one.querySelector('pre[data-body]')
  const body = example === null ? null : field('body', 'Body', example.textContent, 'textarea')
  const send = document.createElement('button')
  send.textContent = `Send ${method} request`
  const output = document.createElement('pre')
  output.hidden = true
  output.setAttribute('role', 'status')
  form.append(send, output)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    output.hidden = false
    output.textContent = 'Sending'
    try {
      output.textContent = await answerOf(method, address.value, body?.value, one.dataset.type)
    } catch (error) {
      output.textContent = String(error)
    }
  })
  one.querySelector('.body').append(form)
}

async function answerOf(method, address, body, type = 'application/json') {
  const url = new URL(address, location.origin)
  // A token goes to this service only.
  if (url.origin !== location.origin) throw new Error('The path must be one of this service')
  const headers = { accept: 'application/json, */*' }
  if (token.value !== '') headers.authorization = `Bearer ${token.value}`
  if (body !== undefined) headers['content-type'] = type
  // A form is shown as JSON too.
  const isForm = body !== undefined && type === 'application/x-www-form-urlencoded'
  const response = await fetch(url, {
    method,
    headers,
    body: isForm ? new URLSearchParams(JSON.parse(body)) : body,
    credentials: 'omit',
    redirect: 'manual',
  })
  const text = await response.text()
  let shown = text
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2)
  } catch {}
  return `${response.status || 'redirect'}\n${shown}`
}
