import type uPlot from 'uplot';

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** Shows the point under the pointer: its time, local and UTC, and its value on each line. */
export function hoverBox(names: readonly string[]): uPlot.Plugin {
  const box = document.createElement('div');
  box.className = 'chart-hover';
  box.hidden = true;
  return {
    hooks: {
      init: (plot) => plot.over.append(box),
      setCursor: (plot) => {
        const { idx, left = -1 } = plot.cursor;
        box.hidden = idx === null || idx === undefined || left < 0;
        if (box.hidden || typeof idx !== 'number') return;
        box.replaceChildren(...linesOf(plot.data, idx, names).map(paragraph));
        const isRight = left > plot.over.clientWidth / 2;
        box.style.left = isRight ? '' : `${left + 12}px`;
        box.style.right = isRight ? `${plot.over.clientWidth - left + 12}px` : '';
      },
    },
  };
}

function linesOf([times, ...values]: uPlot.AlignedData, index: number, names: readonly string[]): string[] {
  const date = new Date((times[index] ?? 0) * 1000);
  const utc = `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const shown = names.map((name, i) => `${name}: ${values[i]?.[index]?.toLocaleString() ?? '–'}`);
  return [LOCAL.format(date), utc, ...shown];
}

function paragraph(text: string): HTMLElement {
  const line = document.createElement('p');
  line.textContent = text;
  return line;
}
