CREATE TABLE regions (region_id integer PRIMARY KEY, region_name text);
CREATE TABLE countries (country_id text PRIMARY KEY, country_name text, region_id integer REFERENCES regions);
CREATE TABLE locations (location_id integer PRIMARY KEY, street_address text, postal_code text, city text, state_province text, country_id text REFERENCES countries);
CREATE TABLE jobs (job_id text PRIMARY KEY, job_title text, min_salary integer, max_salary integer);
CREATE TABLE departments (department_id integer PRIMARY KEY, department_name text, manager_id integer REFERENCES employees, location_id integer REFERENCES locations);
CREATE TABLE employees (employee_id integer PRIMARY KEY, first_name text, last_name text, email text, phone_number text, hire_date date, job_id text REFERENCES jobs, salary integer, commission_pct numeric, manager_id integer REFERENCES employees, department_id integer REFERENCES departments);
CREATE TABLE job_history (employee_id integer REFERENCES employees, start_date date, end_date date, job_id text REFERENCES jobs, department_id integer REFERENCES departments, PRIMARY KEY (employee_id, start_date));
