import {
  DashboardBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as FigureBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as ChartBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { OUTER_ROWS } from './more-panels.js';
import { type PanelOf, PIPELINE_ROWS } from './panels.js';

/** Where the dashboard is, from the root of the repository. */
export const DASHBOARD_FILE = 'deploy/grafana/attest.json';

const SOURCE = { type: 'prometheus', uid: '$datasource' };
/** Of the 24 columns of a dashboard. */
const WIDTH = 6;
const HEIGHT = 7;

/** The dashboard of Grafana, in JSON. */
export function dashboardFile(): string {
  const dashboard = new DashboardBuilder('Attestation service')
    .uid('attest')
    .tags(['attest'])
    .time({ from: 'now-6h', to: 'now' })
    .refresh('1m')
    .timezone('browser')
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
    .withVariable(choice('job', 'label_values(attest_build_info, job)'))
    .withVariable(choice('instance', 'label_values(attest_build_info{job=~"$job"}, instance)'));
  for (const [title, panels] of Object.entries({ ...PIPELINE_ROWS, ...OUTER_ROWS })) {
    dashboard.withRow(new RowBuilder(title));
    for (const panel of panels) dashboard.withPanel(panelOf(panel));
  }
  return `${JSON.stringify(dashboard.build(), null, 2)}\n`;
}

/** A variable with a value for each of a label, all by default. */
function choice(name: string, query: string): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(name)
    .datasource(SOURCE)
    .query(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ selected: true, text: 'All', value: '$__all' });
}

function panelOf({ title, unit, isFigure, queries }: PanelOf): ChartBuilder | FigureBuilder {
  const panel = isFigure ? new FigureBuilder() : new ChartBuilder().fillOpacity(10);
  panel.title(title).unit(unit).datasource(SOURCE).span(WIDTH).height(HEIGHT);
  queries.forEach(([expr, legend], i) => {
    const query = new DataqueryBuilder()
      .refId(String.fromCharCode(65 + i))
      .expr(expr)
      .legendFormat(legend);
    panel.withTarget(isFigure ? query.instant() : query.range());
  });
  return panel;
}
