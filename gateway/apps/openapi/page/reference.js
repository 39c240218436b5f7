// The page of the API: search, and requests from the page. Without this script the page shows the same content.
const operations = [...document.querySelectorAll('details[data-path]')]
const filter = document.getElementById('filter')
const count = document.getElementById('count')
const token = document.getElementById('token')
document.getElementById('access').hidden = false

filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean)
  let shown = 0
  for (const one of operations) {
    one.hidden = !words.every((word) => one.dataset.words.includes(word))
    if (!one.hidden) shown += 1
  }
  for (const section of document.querySelectorAll('section.tag:not(#schemas)')) {
    section.hidden = section.querySelector('details:not([hidden])') === null
  }
  count.textContent = words.length === 0 ? '' : `${shown} of ${operations.length} operations`
})

// A link to an operation or a schema opens it.
function openTarget() {
  const id = decodeURIComponent(location.hash.slice(1))
  const target = id === '' ? null : document.getElementById(id)
  if (target?.tagName === 'DETAILS') target.open = true
  target?.scrollIntoView()
}
addEventListener('hashchange', openTarget)
openTarget()

for (const one of operations) one.addEventListener('toggle', () => one.open && addForm(one))

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
