/**
 * Controls that need a script and are hidden without one. `data-reveal` shows the password of the field that the button
 * controls. `data-codes` copies, saves and prints the recovery codes of the page. Forms that answer a question are sent
 * once.
 */
;(() => {
  for (const button of document.querySelectorAll('[data-reveal]')) {
    const field = document.getElementById(button.getAttribute('aria-controls'))
    const show = (shown) => {
      field.type = shown ? 'text' : 'password'
      button.setAttribute('aria-pressed', String(shown))
    }
    button.hidden = false
    button.addEventListener('click', () => show(field.type === 'password'))
    // Browsers offer to save passwords of password fields only.
    field.form.addEventListener('submit', () => show(false))
  }

  const answers = [...document.querySelectorAll('form.answers')]
  const enable = (form, enabled) => {
    for (const button of form.querySelectorAll('button')) button.disabled = !enabled
  }
  for (const form of answers)
    // A disabled button would not be sent with the form, so it is disabled after the form is made.
    form.addEventListener('submit', () => setTimeout(enable, 0, form, false))
  // Back shows the page as it was left.
  globalThis.addEventListener('pageshow', () => {
    for (const form of answers) enable(form, true)
  })

  const tools = document.querySelector('[data-codes]')
  if (tools === null) return
  tools.hidden = false
  const codes = [...document.querySelectorAll('[data-recovery-code]')].map((one) => one.textContent)
  const text = `${tools.dataset.codes}\n\n${codes.join('\n')}\n`
  const status = tools.querySelector('[role=status]')

  const actions = {
    async copy() {
      await navigator.clipboard.writeText(codes.join('\n'))
      status.textContent = tools.dataset.copied
    },
    download() {
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
      link.download = 'recovery-codes.txt'
      link.click()
      URL.revokeObjectURL(link.href)
    },
    print: () => globalThis.print(),
  }
  for (const button of tools.querySelectorAll('[data-do]')) {
    // Clipboards need a secure context.
    if (button.dataset.do === 'copy' && navigator.clipboard === undefined) button.hidden = true
    button.addEventListener('click', () => actions[button.dataset.do]())
  }
})()
